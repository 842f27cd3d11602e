// How much a training slows while the explorer shows it: the same training with the page open on it and without,
// alternately. Wants web/node_modules (npm ci in web/) and Debian's chromium.
//   node bench/serve/beside_training.mjs PROGRAM [--rounds N] [--out FILE]
// --out keeps the times of several calls in one file, so that rounds may be spread over quiet moments.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const { chromium } = createRequire(new URL('../../web/package.json', import.meta.url))('playwright-core');
const { values, positionals } = parseArgs({ allowPositionals: true, options: { rounds: { type: 'string', default: '2' }, out: { type: 'string' } } });
const [program] = positionals;
if (!program) throw new Error('usage: beside_training.mjs PROGRAM [--rounds N] [--out FILE]');

const folder = mkdtempSync(join(tmpdir(), 'qkv-beside-'));
const train = (name, epochs = 3) => {
  const begin = performance.now();
  const run = spawn(program, ['train', '--preset', 'transformer', '--epochs', String(epochs), '--warmup', '50', '--log-format', 'none', '-o', join(folder, name)]);
  return new Promise((done, failed) => run.on('exit', (code) => (code ? failed(new Error(`train ended with ${code}`)) : done(performance.now() - begin))));
};
const server = spawn(program, ['serve', '--models', folder, '--port', '0', '--no-training'], { stdio: ['ignore', 'pipe', 'ignore'] });
const address = await new Promise((found) => server.stdout.once('data', (data) => found(String(data).trim())));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });

const times = values.out && existsSync(values.out) ? JSON.parse(readFileSync(values.out, 'utf8')) : { beside: [], alone: [] };
try {
  await train('warm', 1);
  for (let round = 0; round < Number(values.rounds); ++round) {
    const page = await browser.newPage();
    await page.goto(`${address}#training?run=run${round}&lang=en`);
    await page.waitForSelector('main h1');
    await page.waitForTimeout(500);
    times.beside.push(await train(`run${round}`));
    await page.close();
    times.alone.push(await train(`alone${round}`));
  }
} finally {
  await browser.close();
  const ended = new Promise((done) => server.on('exit', done));
  server.kill('SIGINT');
  await ended;
  rmSync(folder, { recursive: true, force: true });
}
if (values.out) writeFileSync(values.out, JSON.stringify(times));
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const seconds = (list) => list.map((x) => (x / 1000).toFixed(2)).join(' ');
console.log(`with the page: ${seconds(times.beside)} s`);
console.log(`without:       ${seconds(times.alone)} s`);
const percent = (a, b) => `${(100 * (a / b - 1)).toFixed(1)} %`;
console.log(`slower by ${percent(median(times.beside), median(times.alone))} in the median, ${percent(Math.min(...times.beside), Math.min(...times.alone))} best against best`);
