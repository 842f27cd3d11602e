// The worker of the page under Node: queue, streams, trainings, and that every failure is an answer.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { engine, files_of } from './node.mjs';

const folder = mkdtempSync(join(tmpdir(), 'qkv-worker-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const train = (name, preset, ...more) => execFileSync(process.env.QKV_BIN, ['train', '--preset', preset, '--log-format', 'none', '-o', join(folder, name), '--epochs', '1', '--warmup', '2', ...more], { stdio: 'ignore' });
train('words', 'transformer', '--corpus-size', '300', '--hidden', '16', '--ffn', '16');
train('letters', 'lm', '--corpus-size', '300', '--hidden', '16', '--ffn', '32', '--context', '32');
const models = files_of(folder);
const cues = { want: [0, 0], things: [{ at: [0, 0] }, { at: [1, 0] }], temperature: 1 };

/** A test with an engine of its own. */
const on = (name, what, prelude) =>
  test(name, { timeout: 300_000 }, async () => {
    const here = await engine(models, prelude);
    try {
      await what(here);
    } finally {
      await here.end();
    }
  });

on('of questions that wait, only the newest of a view is answered', async (here) => {
  const answers = await Promise.all([
    here.ask('/translate', { model: 'words', text: 'the cat sleeps .' }, { view: 'a' }),
    ...[1, 2, 3].map((temperature) => here.ask('/cues', { ...cues, temperature }, { view: 'b' })),
    here.ask('/cues', cues, { view: 'c' }),
    here.ask('/cues', cues),
  ]);
  assert.deepEqual(answers.map((a) => a.status), [200, 409, 409, 200, 200, 200]);
  assert.ok(Math.abs(answers[3].data.weights[0] - 1 / (1 + Math.exp(-1 / 3))) < 1e-6);
});

on('tokens come before the answer', async (here) => {
  const { status, data } = await here.ask('/generate', { model: 'letters', prompt: 'the ', count: 12, seed: 1, stream: true }, { view: 'v' });
  assert.equal(status, 200, JSON.stringify(data));
  const tokens = here.events.filter((event) => event.name === 'token');
  assert.equal(tokens.map((event) => event.data.token).join(''), data.text);
  assert.ok(tokens.every((event) => event.data.view === 'v'));
});

on('refusals in both languages', async (here) => {
  const refused = await here.ask('/cues', {});
  assert.deepEqual([refused.status, refused.data.error], [400, 'want is missing']);
  assert.deepEqual((await here.ask('/cues', {}, { lang: 'zh' })).data.error, '缺少 want');
  assert.equal((await here.ask('/cues', '{"want": ')).status, 400);
  assert.equal((await here.ask('/cues', '['.repeat(100_000))).status, 400);
  assert.equal((await here.ask('/nothing', {})).status, 404);
  assert.equal((await here.ask('/cues')).status, 405);
});

on('files without a model in them are left alone or refused with a line', async (here) => {
  const bytes = (text) => new TextEncoder().encode(text);
  const weights = models.find((file) => file.path === '/models/words/model.safetensors').data;
  // The model `words` with another file in place of its own.
  const with_file = (folder, name, data) => models.filter((file) => file.path.startsWith('/models/words/')).map((file) => ({ path: file.path.replace('words', folder), data: file.path.endsWith(`/${name}`) ? data : file.data }));
  const done = here.next((event) => event.name === 'put');
  here.send({
    type: 'put',
    files: [
      { path: '/models/alone/model.safetensors', data: weights },
      ...with_file('settings', 'config.yaml', bytes('a: [1, 2\n')),
      ...with_file('noise', 'model.safetensors', bytes('noise')),
      ...with_file('cut', 'model.safetensors', weights.slice(0, 1000)),
    ],
  });
  assert.deepEqual(await done, {});
  const all = (await here.ask('/models')).data.models;
  assert.deepEqual(all.map((m) => m.name), ['cut', 'letters', 'noise', 'settings', 'words']);
  const settings = all.find((m) => m.name === 'settings');
  assert.equal(settings.state, 'failed');
  assert.match(settings.error, /settings\/config.yaml/);
  for (const model of ['noise', 'cut']) {
    const { status, data } = await here.ask('/translate', { model, text: 'the cat sleeps .' });
    assert.equal(status, 409, JSON.stringify(data));
    assert.match(data.error, new RegExp(`/models/${model}/`));
  }
  assert.equal((await here.ask('/translate', { model: 'words', text: 'the cat sleeps .' })).status, 200);
});

const small = { preset: 'd2l-transformer', settings: { 'training.epochs': 4, 'model.hidden': 16, 'model.ffn': 16, 'model.heads': 2, 'model.layers': 1 } };
on('a training: losses, a look, a pause, questions meanwhile, another seed', async (here) => {
  const trained = async (settings) => {
    const begun = await here.ask('/train/start', { ...small, settings: { ...small.settings, ...settings } });
    assert.equal(begun.status, 200, JSON.stringify(begun.data));
    const done = here.next((event) => event.name === 'train' && event.data.done);
    here.send({ type: 'train', sentences: begun.data.sentences, lang: 'en' });
    return { begun: begun.data, done };
  };
  const first = await trained({});
  const asked = await here.ask('/cues', cues);
  assert.equal(asked.status, 200);
  here.send({ type: 'pause', paused: true });
  await here.ask('/cues', cues);
  const before = here.events.filter((event) => event.name === 'train').length;
  await new Promise((go) => setTimeout(go, 700));
  assert.ok(here.events.filter((event) => event.name === 'train').length <= before + 1);
  here.send({ type: 'pause', paused: false });
  const last = await first.done;
  assert.equal(last.step, first.begun.steps);
  const losses = here.events.filter((event) => event.name === 'train').flatMap((event) => event.data.losses);
  assert.equal(losses.length, 4);
  assert.ok(losses[3] < losses[0]);
  await here.ask('/cues', cues);
  const look = here.events.filter((event) => event.name === 'train_look').at(-1).data;
  assert.equal(look.sentences.length, 4);
  const same = await (await trained({})).done;
  assert.equal(same.loss, last.loss);
  const other = await (await trained({ 'training.seed': 7 })).done;
  assert.notEqual(other.loss, last.loss);
  assert.ok((await here.ask('/models')).data.models.some((m) => m.name === first.begun.name && m.usable));
});

on('a training that cannot be is refused, and memory that ends is an answer', async (here) => {
  for (const settings of [{ 'model.hidden': 100000 }, { 'data.pairs': '/etc/passwd' }, { 'training.rate': 'x' }]) assert.equal((await here.ask('/train/start', { ...small, settings })).status, 400);
  assert.equal((await here.ask('/train/advance', {})).status, 409);
  // Maps of a long text: more than a gigabyte.
  const huge = await here.ask('/maps', { model: 'words', text: 'the cat sleeps . '.repeat(1900), target: 'le chat dort . '.repeat(1900) });
  assert.ok(huge.status === 503 || huge.status === 400, JSON.stringify(huge).slice(0, 300));
  assert.equal((await here.ask('/cues', cues)).status, 200);
});

// A trap of the engine, at the request of a path.
const trapping = `
const plain = WebAssembly.instantiate;
WebAssembly.instantiate = async (...all) => {
  const made = await plain(...all);
  const { exports } = made.instance;
  const asked = (method, path, ...more) => {
    const heap = new Uint8Array(exports.memory.buffer);
    if (Buffer.from(heap.slice(path, path + 40)).toString().startsWith('/api/v1/trap')) throw new WebAssembly.RuntimeError('unreachable');
    return exports.qkv_ask(method, path, ...more);
  };
  return { ...made, instance: { exports: { ...exports, qkv_ask: asked } } };
};
`;
on('a trap is an answer, and the next question finds the engine and its models again', async (here) => {
  const begun = await here.ask('/train/start', small);
  here.send({ type: 'train', sentences: begun.data.sentences, lang: 'en' });
  const failed = here.next((event) => event.name === 'train_failed');
  const trap = await here.ask('/trap', {});
  assert.deepEqual([trap.status, trap.data.error], [500, 'engine']);
  assert.equal((await failed).error, 'engine');
  assert.equal((await here.ask('/translate', { model: 'words', text: 'the cat sleeps .' })).status, 200);
}, trapping);
