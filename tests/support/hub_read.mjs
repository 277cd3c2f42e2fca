// Read safetensors files as @huggingface/hub does, with the bytes of its tensors.
//
//     node hub_read.mjs FILE...
//
// One line a tensor: the file, then as JSON its name and the SHA-256 of its bytes. What the
// reader refuses, or what its own numbers contradict, ends it with status 1.
//
// The reader fetches ranges of a file on the Hub; here a fetch of ours answers from a
// local one. It is found from the current folder, where npm has put it.
import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(process.cwd() + "/"));
const { parseSafetensorsMetadata } = require("@huggingface/hub");
const bits = { BOOL: 8, U8: 8, I8: 8, U16: 16, I16: 16, F16: 16, BF16: 16, U32: 32, I32: 32,
	F32: 32, U64: 64, I64: 64, F64: 64 };

async function read(file, from, size) {
	const buffer = Buffer.alloc(size);
	const { bytesRead } = await file.read(buffer, 0, size, from);
	if (bytesRead !== size)
		throw new Error(`${bytesRead} bytes at ${from} where ${size} were wanted`);
	return buffer;
}

function served(file, size) {
	return async (url, init) => {
		if (!String(url).endsWith("/model.safetensors"))
			return new Response(null, { status: 404 });
		const range = /bytes=(\d+)-(\d*)/.exec(new Headers(init?.headers).get("range") ?? "");
		const from = range ? Number(range[1]) : 0;
		const to = range?.[2] ? Math.min(Number(range[2]), size - 1) : size - 1;
		const body = init?.method === "HEAD" ? null : await read(file, from, to - from + 1);

		return new Response(body, { status: range ? 206 : 200, headers: {
			"content-range": `bytes ${from}-${to}/${size}`,
			"content-length": String(to - from + 1), etag: '"local"' } });
	};
}

async function show(path) {
	const file = await open(path);
	const size = (await file.stat()).size;
	const { header } = await parseSafetensorsMetadata({ repo: "local/pack",
		fetch: served(file, size) });
	const data = 8 + Number((await read(file, 0, 8)).readBigUInt64LE());
	let end = 0;

	for (const [name, info] of Object.entries(header)) {
		if (name === "__metadata__")
			continue;
		const [from, to] = info.data_offsets;
		const wanted = info.shape.reduce((product, dim) => product * dim, bits[info.dtype] / 8);
		const bytes = await read(file, data + from, to - from);

		if (to - from !== wanted)
			throw new Error(`${path}: ${name}: ${to - from} bytes, ${wanted} by its shape`);
		end = Math.max(end, to);
		console.log(path + "\t" + JSON.stringify([name,
			createHash("sha256").update(bytes).digest("hex")]));
	}
	if (data + end !== size)
		throw new Error(`${path}: ${size - data - end} bytes behind the last tensor`);
	await file.close();
}

for (const path of process.argv.slice(2))
	await show(path);
