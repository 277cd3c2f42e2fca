/*
 * train.c - a training loop that can be killed at any moment and taken up again.
 *
 *	train [--epochs N] [--wait] DIR
 *
 * A network of two layers learns to tell two half moons apart. After each epoch the
 * module, the optimizer (Adam) and the scheduler are saved in DIR, under the names that
 * Burn uses. A run begins with the highest epoch of which all three are there, and ends
 * with the same weights, bit for bit, whether it was interrupted or not: all that the
 * next epoch depends on is in the records, the state of the random numbers too.
 *
 * With --wait it says what was saved and reads a line before it goes on.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpk_record.h>

#define HIDDEN 16
#define WEIGHTS (2 * HIDDEN) /* of the largest parameter */
#define SAMPLES 512
#define BATCH 32
#define TAU 6.283185307179586

struct param {
	const char *path; /* in the module */
	float value[WEIGHTS], gradient[WEIGHTS], moment_1[WEIGHTS], moment_2[WEIGHTS];
	uint64_t shape[2];
	size_t rank, count;
	uint64_t id;
};

enum { HIDDEN_WEIGHT, HIDDEN_BIAS, OUTPUT_WEIGHT, OUTPUT_BIAS, PARAMS };

struct state {
	struct param params[PARAMS];
	int64_t time;	 /* steps of Adam */
	uint64_t epoch;	 /* the last one that is complete */
	double rate;	 /* the learning rate */
	uint64_t random; /* of the shuffling */
	struct bpk_checkpointer *model, *optim, *scheduler;
	bool wait;
};

static float inputs[SAMPLES][2];
static float labels[SAMPLES];

/* Data --------------------------------------------------------------------- */

/* xorshift64* */
static uint64_t next_random(uint64_t *random)
{
	*random ^= *random >> 12;
	*random ^= *random << 25;
	*random ^= *random >> 27;
	return *random * UINT64_C(2685821657736338717);
}

static double uniform(uint64_t *random)
{
	return (double)(next_random(random) >> 11) / 9007199254740992.0;
}

static void make_data(void)
{
	uint64_t random = 1;

	for (int i = 0; i < SAMPLES; i++) {
		bool lower = i % 2;
		double angle = uniform(&random) * TAU / 2;
		double x = cos(angle), y = sin(angle);

		inputs[i][0] =
			(float)((lower ? 1 - x : x) + 0.2 * (uniform(&random) - 0.5));
		inputs[i][1] =
			(float)((lower ? 0.4 - y : y) + 0.2 * (uniform(&random) - 0.5));
		labels[i] = lower;
	}
}

static void init_param(struct state *state, int which, const char *path, uint64_t rows,
		       uint64_t columns, double spread)
{
	struct param *param = &state->params[which];

	*param = (struct param) {
		.path = path,
		.shape = { rows, columns },
		.rank = columns ? 2 : 1,
		.count = (size_t)(rows * (columns ? columns : 1)),
		.id = 1000 + (uint64_t)which,
	};
	for (size_t i = 0; i < param->count; i++)
		param->value[i] = (float)(spread * (2 * uniform(&state->random) - 1));
}

static void init_state(struct state *state)
{
	state->random = 42;
	state->rate = 0.02;
	init_param(state, HIDDEN_WEIGHT, "hidden.weight", 2, HIDDEN, 1);
	init_param(state, HIDDEN_BIAS, "hidden.bias", HIDDEN, 0, 0);
	init_param(state, OUTPUT_WEIGHT, "output.weight", HIDDEN, 1, 0.25);
	init_param(state, OUTPUT_BIAS, "output.bias", 1, 0, 0);
}

/* Learning ----------------------------------------------------------------- */

/* How likely the sample is in the lower moon; the hidden layer's values for backward().
 */
static float forward(const struct state *state, const float input[2],
		     float hidden[HIDDEN])
{
	const struct param *params = state->params;
	float sum = params[OUTPUT_BIAS].value[0];

	for (int j = 0; j < HIDDEN; j++) {
		hidden[j] = tanhf(input[0] * params[HIDDEN_WEIGHT].value[j] +
				  input[1] * params[HIDDEN_WEIGHT].value[HIDDEN + j] +
				  params[HIDDEN_BIAS].value[j]);
		sum += hidden[j] * params[OUTPUT_WEIGHT].value[j];
	}
	return 1 / (1 + expf(-sum));
}

/* Add the gradients of one sample. */
static void backward(struct state *state, const float input[2], float label)
{
	struct param *params = state->params;
	float hidden[HIDDEN], error = forward(state, input, hidden) - label;

	params[OUTPUT_BIAS].gradient[0] += error;
	for (int j = 0; j < HIDDEN; j++) {
		float inner = error * params[OUTPUT_WEIGHT].value[j] *
			      (1 - hidden[j] * hidden[j]);

		params[OUTPUT_WEIGHT].gradient[j] += error * hidden[j];
		params[HIDDEN_BIAS].gradient[j] += inner;
		params[HIDDEN_WEIGHT].gradient[j] += inner * input[0];
		params[HIDDEN_WEIGHT].gradient[HIDDEN + j] += inner * input[1];
	}
}

static void adam(struct state *state)
{
	double time = (double)++state->time;
	float fix_1 = (float)(1 - pow(0.9, time)), fix_2 = (float)(1 - pow(0.999, time));

	for (int p = 0; p < PARAMS; p++)
		for (size_t i = 0; i < state->params[p].count; i++) {
			struct param *param = &state->params[p];
			float g = param->gradient[i] / BATCH;

			param->moment_1[i] = 0.9f * param->moment_1[i] + 0.1f * g;
			param->moment_2[i] = 0.999f * param->moment_2[i] + 0.001f * g * g;
			param->value[i] -= (float)state->rate *
					   (param->moment_1[i] / fix_1) /
					   (sqrtf(param->moment_2[i] / fix_2) + 1e-8f);
			param->gradient[i] = 0;
		}
}

static void train_epoch(struct state *state)
{
	int order[SAMPLES];

	/* From the start each time, so that only the random numbers have to be kept. */
	for (int i = 0; i < SAMPLES; i++)
		order[i] = i;
	for (int i = SAMPLES - 1; i > 0; i--) {
		int k = (int)(next_random(&state->random) % (uint64_t)(i + 1));
		int swapped = order[i];

		order[i] = order[k];
		order[k] = swapped;
	}
	for (int i = 0; i < SAMPLES; i++) {
		backward(state, inputs[order[i]], labels[order[i]]);
		if (i % BATCH == BATCH - 1)
			adam(state);
	}
	state->rate *= 0.95;
	state->epoch++;
}

static double accuracy(const struct state *state)
{
	float hidden[HIDDEN];
	int right = 0;

	for (int i = 0; i < SAMPLES; i++)
		right += (forward(state, inputs[i], hidden) > 0.5f) == (labels[i] > 0.5f);
	return (double)right / SAMPLES;
}

/* Saving ------------------------------------------------------------------- */

/* The values, or one of the moments, as the library wants them described. */
static struct bpk_param describe_param(struct param *param, float *data)
{
	return (struct bpk_param) {
		.dtype = BPK_DTYPE_F32,
		.shape = param->shape,
		.rank = param->rank,
		.data = data,
		.has_param_id = true,
		.param_id = param->id,
	};
}

static void visit_layer(struct bpk_visitor *visitor, const char *name,
			struct param *weight, struct param *bias)
{
	struct bpk_param w = describe_param(weight, weight->value);
	struct bpk_param b = describe_param(bias, bias->value);

	bpk_visit_enter(visitor, name);
	bpk_visit_param(visitor, "weight", &w);
	bpk_visit_param(visitor, "bias", &b);
	bpk_visit_exit(visitor);
	/* The optimizer's state goes by the ids of the record. */
	weight->id = w.param_id;
	bias->id = b.param_id;
}

static int describe(struct bpk_visitor *visitor, void *module)
{
	struct state *state = module;
	struct param *params = state->params;

	visit_layer(visitor, "hidden", &params[HIDDEN_WEIGHT], &params[HIDDEN_BIAS]);
	visit_layer(visitor, "output", &params[OUTPUT_WEIGHT], &params[OUTPUT_BIAS]);
	return 0;
}

static int record_optimizer(struct state *state, struct bpk_record *record,
			    struct bpk_error *error)
{
	int r = 0;

	for (int p = 0; r >= 0 && p < PARAMS; p++) {
		struct param *param = &state->params[p];
		struct bpk_param first = describe_param(param, param->moment_1);
		struct bpk_param second = describe_param(param, param->moment_2);

		r = bpk_optimizer_add_param(record, param->id, param->rank, param->path,
					    error);
		if (r >= 0)
			r = bpk_optimizer_add_tensor(record, param->id,
						     "momentum.moment_1", &first, error);
		if (r >= 0)
			r = bpk_optimizer_add_tensor(record, param->id,
						     "momentum.moment_2", &second, error);
		if (r >= 0)
			r = bpk_optimizer_set_scalar(record, param->id, "momentum.time",
						     bpk_scalar_from_i64(state->time),
						     error);
	}
	return r;
}

static int record_scheduler(struct state *state, struct bpk_record *record,
			    struct bpk_error *error)
{
	int r = bpk_scheduler_set_u64(record, "current_iter", state->epoch, error);

	if (r >= 0)
		r = bpk_scheduler_set_f64(record, "lr", state->rate, error);
	if (r >= 0)
		r = bpk_scheduler_set_u64(record, "random", state->random, error);
	return r;
}

/* Save @record, which goes, and with --wait say so and stop until there is a line. */
static int save(struct state *state, struct bpk_checkpointer *checkpointer,
		const char *name, struct bpk_record *record, struct bpk_error *error)
{
	char line[16];
	int r = bpk_checkpointer_save(checkpointer, state->epoch, record, NULL, error);

	bpk_record_free(record);
	if (r < 0 || !state->wait)
		return r;
	printf("saved %s %llu\n", name, (unsigned long long)state->epoch);
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) ? 0 : -1;
}

static int save_all(struct state *state, struct bpk_error *error)
{
	struct bpk_record *record;
	int r = bpk_module_collect(describe, state, &record, error);

	if (r >= 0)
		r = save(state, state->model, "model", record, error);
	if (r < 0 || (r = bpk_record_new(&record)) < 0)
		return r;
	r = record_optimizer(state, record, error);
	if (r < 0)
		bpk_record_free(record);
	else
		r = save(state, state->optim, "optim", record, error);
	if (r < 0 || (r = bpk_record_new(&record)) < 0)
		return r;
	r = record_scheduler(state, record, error);
	if (r < 0)
		bpk_record_free(record);
	else
		r = save(state, state->scheduler, "scheduler", record, error);
	return r;
}

/* Loading ------------------------------------------------------------------ */

static int load_param(struct state *state, struct param *param,
		      const struct bpk_optimizer *optimizer, struct bpk_error *error)
{
	const struct bpk_optimizer_param *found =
		bpk_optimizer_find(optimizer, param->id);
	struct bpk_param first = describe_param(param, param->moment_1);
	struct bpk_param second = describe_param(param, param->moment_2);
	int r;

	if (!found) {
		snprintf(error->message, sizeof(error->message), "no state of %s",
			 param->path);
		return -1;
	}
	r = bpk_optimizer_read(found, "momentum.moment_1", BPK_DTYPE_CAST_TO_MODULE,
			       &first, error);
	if (r >= 0)
		r = bpk_optimizer_read(found, "momentum.moment_2",
				       BPK_DTYPE_CAST_TO_MODULE, &second, error);
	if (r >= 0)
		r = bpk_scalar_to_i64(
			bpk_optimizer_find_scalar(found, "momentum.time")->value,
			&state->time);
	return r;
}

static int load_optimizer(struct state *state, const struct bpk_record *record,
			  struct bpk_error *error)
{
	static const char *const required[] = { "momentum.time" };
	struct bpk_optimizer *optimizer = NULL;
	int r = bpk_optimizer_open(record, required, 1, NULL, NULL, &optimizer, error);

	for (int p = 0; r >= 0 && p < PARAMS; p++)
		r = load_param(state, &state->params[p], optimizer, error);
	bpk_optimizer_close(optimizer);
	return r;
}

static int load_scheduler(struct state *state, const struct bpk_record *record,
			  struct bpk_error *error)
{
	int r = bpk_scheduler_get_u64(record, "current_iter", &state->epoch, error);

	if (r >= 0)
		r = bpk_scheduler_get_f64(record, "lr", &state->rate, error);
	if (r >= 0)
		r = bpk_scheduler_get_u64(record, "random", &state->random, error);
	return r;
}

static int load_all(struct state *state, uint64_t epoch, struct bpk_error *error)
{
	struct bpk_record *model = NULL, *optim = NULL, *scheduler = NULL;
	int r = bpk_checkpointer_restore(state->model, epoch, &model, error);

	if (r >= 0)
		r = bpk_checkpointer_restore(state->optim, epoch, &optim, error);
	if (r >= 0)
		r = bpk_checkpointer_restore(state->scheduler, epoch, &scheduler, error);
	if (r >= 0)
		r = bpk_module_load(model, describe, state, NULL, error);
	if (r >= 0)
		r = load_optimizer(state, optim, error);
	if (r >= 0)
		r = load_scheduler(state, scheduler, error);
	bpk_record_free(model);
	bpk_record_free(optim);
	bpk_record_free(scheduler);
	return r;
}

static bool has_epoch(struct bpk_checkpointer *checkpointer, uint64_t epoch)
{
	uint64_t *epochs;
	size_t count;
	bool found = false;

	if (bpk_checkpointer_list(checkpointer, &epochs, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		found = found || epochs[i] == epoch;
	free(epochs);
	return found;
}

/* Whoever was killed between two saves has left an epoch of which a part is missing. */
static int resume(struct state *state, struct bpk_error *error)
{
	uint64_t *epochs;
	size_t count;
	int r = bpk_checkpointer_list(state->model, &epochs, &count, error);

	if (r < 0)
		return r;
	while (count && !(has_epoch(state->optim, epochs[count - 1]) &&
			  has_epoch(state->scheduler, epochs[count - 1])))
		count--;
	if (count) {
		r = load_all(state, epochs[count - 1], error);
		printf("resumed after epoch %llu\n",
		       (unsigned long long)epochs[count - 1]);
	}
	free(epochs);
	return r;
}

static int run(struct state *state, const char *dir, uint64_t epochs,
	       struct bpk_error *error)
{
	/* One would be too few: the newest may be incomplete. */
	const struct bpk_checkpointer_options options = { .keep_last = 3 };
	int r = bpk_checkpointer_new(dir, "model", &options, &state->model, error);

	if (r >= 0)
		r = bpk_checkpointer_new(dir, "optim", &options, &state->optim, error);
	if (r >= 0)
		r = bpk_checkpointer_new(dir, "scheduler", &options, &state->scheduler,
					 error);
	if (r >= 0)
		r = resume(state, error);
	while (r >= 0 && state->epoch < epochs) {
		train_epoch(state);
		r = save_all(state, error);
	}
	bpk_checkpointer_close(state->model, NULL);
	bpk_checkpointer_close(state->optim, NULL);
	bpk_checkpointer_close(state->scheduler, NULL);
	return r;
}

int main(int argc, char **argv)
{
	struct bpk_error error = { .message = "stopped" };
	static struct state state;
	uint64_t epochs = 20;
	int at = 1;

	if (at + 1 < argc && strcmp(argv[at], "--epochs") == 0) {
		epochs = strtoull(argv[at + 1], NULL, 10);
		at += 2;
	}
	if (at < argc && strcmp(argv[at], "--wait") == 0) {
		state.wait = true;
		at++;
	}
	if (at + 1 != argc) {
		fprintf(stderr, "usage: %s [--epochs N] [--wait] DIR\n", argv[0]);
		return 1;
	}
	make_data();
	init_state(&state);
	if (run(&state, argv[at], epochs, &error) < 0) {
		fprintf(stderr, "%s: %s\n", argv[at], error.message);
		return 1;
	}
	printf("epoch %llu: %.1f %% right\n", (unsigned long long)state.epoch,
	       100 * accuracy(&state));
	return 0;
}
