// The speed table of docs/wasm.md: `qkv bench` with one thread beside the engine under Node, as Markdown.
//   ninja -C build/wasm speed && QKV_BIN=build/release/bin/qkv node web/engine/speed.mjs [PART OF A NAME]
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const made = process.env.QKV_WASM_BUILD ?? join(here, '../../build/wasm');
const program = process.env.QKV_BIN ?? join(here, '../../build/release/bin/qkv');
const [part] = process.argv.slice(2);
const run = (command, args) => JSON.parse(execFileSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 24, stdio: ['ignore', 'pipe', 'ignore'] })).lines;

const page = run(process.execPath, [join(here, 'tests.cjs'), join(made, 'speed'), ...(part ? [part] : [])]);
const native = run(program, ['--threads', '1', 'bench', '--json', ...(part ? ['--filter', part] : [])]);
const time = (s) => (s < 1e-6 ? `${(1e9 * s).toFixed(0)} ns` : s < 1e-3 ? `${(1e6 * s).toFixed(1)} µs` : `${(1e3 * s).toFixed(2)} ms`);
const digits = (x) => (x >= 100 ? x.toFixed(0) : x.toPrecision(3));
console.log('| | engine | program | ratio | engine |\n|---|---|---|---|---|');
for (const line of page) {
  const other = native.find((one) => one.name === line.name);
  if (!other) throw new Error(`the program has no line "${line.name}"`);
  console.log(`| ${line.name} | ${time(line.seconds)} | ${time(other.seconds)} | ${(line.seconds / other.seconds).toFixed(1)} | ${line.unit ? `${digits(line.rate)} ${line.unit}` : ''} |`);
}
