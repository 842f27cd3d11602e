// Makes what a page needs of the engine from build/wasm: dist/engine/worker.js (emscripten's loader with the worker's own
// code), engine.wasm.gz and zh.po.gz (the Chinese of what the engine says). `node engine.mjs --check` compares instead.
import { build, transform } from 'esbuild';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';

const root = dirname(fileURLToPath(import.meta.url));
const made = process.env.QKV_WASM_BUILD ?? join(root, '../build/wasm');
const limit = 850_000; // bytes of all of it, gzipped: docs/wasm.md has what they are

const wasm = await readFile(join(made, 'engine.small.wasm'));
const loader = await readFile(join(made, 'engine.js'), 'utf8');
const { outputFiles } = await build({ absWorkingDir: root, entryPoints: ['engine/worker.ts'], bundle: true, format: 'iife', target: 'es2021', write: false, charset: 'utf8' });
// The loader finds files that it was compiled with beside its script; there are none.
const { code: worker } = await transform(`(()=>{${loader}\n${outputFiles[0].text}})();`, { minify: true, target: 'es2021', charset: 'utf8', legalComments: 'none' });

// Only sentences whose English is in the engine.
const said = wasm.toString('latin1');
const unquoted = (lines) => Buffer.from([...lines.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map((m) => m[1]).join('').replace(/\\(.)/g, (_, c) => (c === 'n' ? '\n' : c)), 'utf8').toString('latin1');
const [header, ...entries] = (await readFile(join(root, '../po/zh_CN.po'), 'utf8')).split(/\n\n+/);
const kept = entries.filter((entry) => {
  const id = /^msgid ((?:.|\n)*?)^msgstr/m.exec(entry);
  const english = id && unquoted(id[1]);
  return english && said.includes(english) && !/^#~/m.test(entry);
});
const po = [header, ...kept.map((entry) => entry.replace(/^#.*\n/gm, '').trim())].join('\n\n') + '\n';

const zip = (data) => gzipSync(data, { level: 9 });
const files = { 'worker.js.gz': zip(worker), 'engine.wasm.gz': zip(wasm), 'zh.po.gz': zip(po) };
const sizes = Object.entries(files).map(([name, data]) => `${name} ${data.length}`).join(', ');
const total = Object.values(files).reduce((sum, data) => sum + data.length, 0);
if (total > limit) throw new Error(`the engine is ${total} bytes gzipped, at most ${limit}`);

const folder = join(root, 'dist/engine');
if (process.argv.includes('--check')) {
  const different = [];
  for (const [name, data] of Object.entries(files)) {
    const old = await readFile(join(folder, name)).catch(() => null);
    if (!old || !gunzipSync(old).equals(gunzipSync(data))) different.push(`web/dist/engine/${name}`);
  }
  if (different.length) {
    console.error(`not what the sources build: ${different.join(', ')}; run "./test --wasm", then "npm ci && npm run engine" in web/ and commit`);
    process.exit(1);
  }
  console.log(`web/dist/engine is what the sources build; ${total} bytes gzipped (${sizes})`);
} else {
  await mkdir(folder, { recursive: true });
  for (const [name, data] of Object.entries(files)) await writeFile(join(folder, name), data);
  console.log(`web/dist/engine: ${total} bytes gzipped (${sizes})`);
}
