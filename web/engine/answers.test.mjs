// The engine under Node beside the program: the requests of docs/api.md and more, equal to 1e-5. QKV_BIN is the program.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { engine, files_of } from './node.mjs';

const program = process.env.QKV_BIN;
const folder = mkdtempSync(join(tmpdir(), 'qkv-answers-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const qkv = (args, input) => execFileSync(program, args, { maxBuffer: 1 << 28, input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'ignore'] });

for (const [name, preset, ...more] of [
  ['1-translation', 'transformer', '--corpus-size', '1000', '--epochs', '2', '--hidden', '32', '--ffn', '32', '--warmup', '10'],
  ['2-language', 'lm', '--corpus-size', '300', '--epochs', '1', '--hidden', '32', '--ffn', '64', '--context', '64', '--warmup', '2'],
  ['3-vision', 'vit', '--picture-count', '600', '--epochs', '1', '--warmup', '5'],
  ['4-recurrent', 'bahdanau', '--corpus-size', '300', '--epochs', '1', '--hidden', '32'],
])
  qkv(['train', '--preset', preset, '--log-format', 'none', '-o', join(folder, name), ...more]);
const here = await engine(files_of(folder));
after(() => here.end());
let largest = 0, requests = 0, numbers = 0;

// What names the machine, the folder of models or the session.
const own = /\.(changed|command|session|kernels|threads|resume|seconds|per_second)$/;
function near(a, b, where) {
  if (own.test(where)) return;
  if (typeof a === 'number' && typeof b === 'number') {
    const apart = Math.abs(a - b) / Math.max(1, Math.abs(b));
    largest = Math.max(largest, apart);
    ++numbers;
    assert.ok(apart <= 1e-5, `${where}: ${a}, and the program has ${b}`);
  } else if (!a || !b || typeof a !== 'object' || typeof b !== 'object') {
    assert.equal(a, b, where);
  } else {
    assert.deepEqual(Object.keys(a), Object.keys(b), where);
    for (const key of Object.keys(b)) near(a[key], b[key], `${where}.${key}`);
  }
}
async function compare(path, body) {
  const ours = await here.ask(path, body);
  assert.equal(ours.status, 200, `${path}: ${JSON.stringify(ours.data)}`);
  const args = ['ask', '--models', folder, path.slice(1)];
  near(ours.data, JSON.parse(body === undefined ? qkv(args) : qkv([...args, '-'], JSON.stringify(body))), path);
  ++requests;
  return ours.data;
}

const api = readFileSync(join(dirname(fileURLToPath(import.meta.url)), '../../docs/api.md'), 'utf8');
for (const [, method, path, body] of api.matchAll(/```http\n(GET|POST) (\S+)\n([^`]*)```/g)) {
  // A rectangle of an earlier answer, a stream of the server, and what is for clients of the server alone.
  if (!path.startsWith('/api/v1/') || /\/(events|map)$/.test(path)) continue;
  test(`${path} as in docs/api.md`, () => compare(path.slice('/api/v1'.length), method === 'POST' ? JSON.parse(body) : undefined));
}

const wave = (n, f) => Array.from({ length: n }, (_, i) => Math.round(1e4 * f(i)) / 1e4);
const rows = (n, width, speed) => Array.from({ length: n }, (_, i) => wave(width, (j) => Math.sin(speed * (i * width + j) + 0.3)));
test('regression: kernels, estimators, bandwidths, learning', async () => {
  const { kernels_1d, estimators } = (await here.ask('/about')).data;
  const x = wave(40, (i) => 0.11 * i + 0.04 * Math.sin(7 * i)), y = wave(40, (i) => 2 * Math.sin(0.11 * i) + 0.01 * i * i + 0.3 * Math.cos(5 * i));
  for (const kernel of kernels_1d) await compare('/regress', { x, y, kernel, bandwidth: 0.7, grid: { low: 0, high: 4.4, count: 50 }, at: 2 });
  for (const estimator of estimators) await compare('/regress', { x, y, fit: estimator, bandwidth: 0.4 });
  for (const bandwidth of ['rule', 'cv']) await compare('/regress', { x, y, bandwidth });
  await compare('/regress/learn', { x, y, epochs: 20, rate: 0.01, start: 1, seed: 3 });
});
test('scores: every scorer, masks, windows, bandwidths', async () => {
  const q = rows(5, 4, 0.7), k = rows(6, 4, 0.9), v = rows(6, 3, 1.3);
  for (const scorer of (await here.ask('/about')).data.scorers)
    if (!scorer.params.length) await compare('/attend', { score: scorer.name, q, k, v });
  await compare('/attend', { score: 'scaled-dot', q, k, v, lens: [3, 0, 6, 1, 2], temperature: 0.5 });
  await compare('/attend', { score: 'scaled-dot', q, k: k.slice(0, 5), v: v.slice(0, 5), causal: true, window: [2, 1] });
});
test('positions: every kind', async () => {
  for (const kind of (await here.ask('/about')).data.positions) if (kind !== 'none') await compare('/positions', { kind, length: 12, width: 8, offset: 2, order: [3, 1, 2, 0, 4, 5, 6, 7, 8, 9, 10, 11] });
});
test('cues: every pooling, temperatures', async () => {
  const things = wave(6, (i) => i).map((i) => ({ name: `t${i}`, at: [Math.cos(i), Math.sin(i)] }));
  for (const temperature of [0.1, 1, 10]) await compare('/cues', { want: [0.25, 0.5], things, temperature });
});
test('a model that translates: sentences, beams, edits, readings', async () => {
  for (const text of ['thomas likes the water that the intelligent children are drinking .', 'the doctor sees paul .']) {
    for (const model of ['1-translation', '4-recurrent'])
      for (const beam of [1, 4]) await compare('/translate', { model, text, beam, top: 3, force: 'le chat dort .' });
    for (const reading of ['weights', 'values', 'rollout']) await compare('/maps', { model: '1-translation', text, target: 'le chat dort .', reading });
    for (const edit of [{ do: 'off' }, { do: 'flat' }, { do: 'force', key: 1 }, { do: 'temperature', value: 2 }, { do: 'mask', keys: [0, 2] }])
      await compare('/blocks', { model: '1-translation', text, target: 'le chat dort .', edits: [{ name: 'cross', layer: 1, head: 2, ...edit }] });
  }
});
test('a rectangle of a map is that of the map', async () => {
  const whole = (await here.ask('/maps', { model: '1-translation', text: 'the cat sleeps .', target: 'le chat dort .' })).data;
  const map = whole.maps.find((one) => one.name === 'cross');
  const [rows, columns] = map.shape;
  const part = await here.ask('/map', { session: whole.session, name: 'cross', layer: map.layer, head: map.head, row: [0, rows], column: [0, columns], cells: [rows, columns] });
  assert.equal(part.status, 200);
  near(part.data.values, map.values, '/map');
});
test('refusals are those of the program', async () => {
  for (const [path, body] of [['/cues', {}], ['/attend', { q: [[1]], k: [[1, 2]], v: [[1]] }], ['/translate', { model: 'none', text: 'a' }], ['/regress', { x: [1, 'a'], y: [1, 2] }], ['/nothing', {}]]) {
    const { status, data } = await here.ask(path, body);
    assert.ok(status >= 400, path);
    let said = '';
    try {
      execFileSync(program, ['ask', '--models', folder, path.slice(1), JSON.stringify(body)], { encoding: 'utf8', stdio: 'pipe' });
    } catch (problem) {
      said = problem.stderr;
    }
    assert.equal(said.split('\n')[0], `qkv: error: ${data.error}`);
  }
});
after(() => console.log(`${requests} requests, ${numbers} numbers; the largest difference is ${largest.toExponential(1)}`));
