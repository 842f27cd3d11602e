// Runs a program of the wasm build under Node: tests.cjs PROGRAM [ARGUMENT...]. This emscripten would fetch the file of the
// program, which newer versions of Node refuse for a path.
const { readFileSync } = require('node:fs');
const { resolve } = require('node:path');
const program = resolve(process.argv[2]);
globalThis.Module = { wasmBinary: readFileSync(`${program}.wasm`), arguments: process.argv.slice(3) };
require(`${program}.js`);
