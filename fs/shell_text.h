/*
 * shell_text.h - a word as a shell reads it, for commands that a message tells: they are
 * made to be copied. Text in, text out.
 */
#ifndef BPKFS_SHELL_TEXT_H
#define BPKFS_SHELL_TEXT_H

/*
 * @word as one word of a command line, malloc'd; NULL without memory. As it is where no
 * shell reads anything into it, else in single quotes, which every shell knows. Control
 * characters, which a message cannot show, make it $'...' of bash, zsh and POSIX.1-2024.
 */
char *shell_word(const char *word);

#endif
