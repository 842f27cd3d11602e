// Builds the page: dist/index.html with script and style inside, dist/csp.txt for the server that sends it, and
// dist/LICENSES.txt of what is bundled. `node build.mjs --check` builds in memory and fails if dist/ differs.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(fileURLToPath(import.meta.url));
const limit = 200_000; // bytes, gzipped

const { outputFiles, metafile } = await build({
  absWorkingDir: root,
  entryPoints: ['src/main.tsx'],
  bundle: true,
  minify: true,
  format: 'iife',
  target: 'es2021',
  charset: 'utf8',
  legalComments: 'none',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  write: false,
  metafile: true,
  outdir: 'dist',
  logLevel: 'warning',
});
const text = (end) => outputFiles.find((file) => file.path.endsWith(end)).text.trim();
// The bar of index.html is painted first, and the script is read with the next frame; a tab in the background has none.
const script = `(()=>{"use strict";let begun=0;const go=()=>{if(begun++)return;${text('.js').replaceAll('</script', '<\\/script')}};requestAnimationFrame(()=>setTimeout(go));setTimeout(go,100)})()`;
const style = text('.css');

const sha = (content) => `'sha256-${createHash('sha256').update(content).digest('base64')}'`;
const policy = [
  "default-src 'none'",
  `script-src ${sha(script)}`,
  `style-src ${sha(style)}`,
  'img-src data: blob:',
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

// Every package that has a byte in the bundle, with its licence as it ships.
const names = new Set();
for (const [path, { bytesInOutput }] of Object.entries(Object.values(metafile.outputs).find((o) => o.entryPoint).inputs)) {
  const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
  if (found && bytesInOutput) names.add(found[1]);
}
names.add('uplot'); // its style sheet is another output
let licences = 'The explorer page contains the following packages, each under its own licence.\n';
for (const name of [...names].sort()) {
  const folder = join(root, 'node_modules', name);
  const { version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  let words;
  for (const file of ['LICENSE', 'LICENSE.md', 'LICENSE.txt']) {
    words = await readFile(join(folder, file), 'utf8').catch(() => undefined);
    if (words) break;
  }
  if (!words) throw new Error(`no licence text in ${folder}`);
  licences += `\n${'='.repeat(80)}\n${name} ${version} (${license})\n${'='.repeat(80)}\n\n${words.trim()}\n`;
}

const escaped = licences.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const page = (await readFile(join(root, 'src/index.html'), 'utf8'))
  .replace('/*style*/', () => style)
  .replace('/*script*/', () => script)
  .replace('<!--licences-->', () => escaped);
const files = { 'index.html': page, 'csp.txt': `${policy}\n`, 'LICENSES.txt': licences };

const size = gzipSync(page, { level: 9 }).length;
if (size > limit) throw new Error(`the page is ${size} bytes gzipped, at most ${limit}`);

if (process.argv.includes('--check')) {
  const different = [];
  for (const [name, content] of Object.entries(files)) {
    if ((await readFile(join(root, 'dist', name), 'utf8').catch(() => '')) !== content) different.push(`web/dist/${name}`);
  }
  if (different.length) {
    console.error(`not what the sources build: ${different.join(', ')}; run "npm ci && npm run build" in web/ and commit`);
    process.exit(1);
  }
  console.log(`web/dist is what the sources build; ${size} bytes gzipped`);
} else {
  await mkdir(join(root, 'dist'), { recursive: true });
  for (const [name, content] of Object.entries(files)) await writeFile(join(root, 'dist', name), content);
  console.log(`web/dist/index.html: ${page.length} characters, ${size} bytes gzipped`);
}
