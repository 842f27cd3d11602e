// Runs a program of the wasm build under Node: tests.cjs PROGRAM [ARGUMENT...]. This emscripten would fetch the program's
// .wasm, which newer versions of Node refuse for a path; without `fetch` it reads the file.
const { resolve } = require('node:path');
const program = resolve(process.argv[2]);
process.argv.splice(1, 2, program);
delete globalThis.fetch;
require(`${program}.js`);
