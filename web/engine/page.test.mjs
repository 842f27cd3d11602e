// The engine in the page: a report opened from disk, without a server or a network, each bench used as a person would.
// Its numbers are those of the program.
import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { qkv } from '../tests/explorer.mjs';
import { bench, go, last, near, workshop } from './page.mjs';

let here;
before(async () => void (here = await workshop()), { timeout: 300_000 });
after(() => here?.close());

/** What a person does in each bench, and the question that it becomes. */
const deeds = {
  cues: { path: '/cues', act: async (f) => { await f.focus('.want'); for (let i = 0; i < 3; ++i) await f.press('.want', 'ArrowRight'); } },
  regression: {
    path: '/regress',
    act: async (f) => {
      await f.click('text=Paste a CSV');
      await f.fill('.pastebox textarea', 'x,y\n0.5,1.25\n1,2\n1.75,0.5\n3,4\n4.5,-1');
      await f.click('.pastebox button');
    },
    fits: (body) => body.x.length === 5,
  },
  scores: { path: '/attend', act: async (f) => { await f.locator('table.cells input').first().fill('2.75'); await f.keyboard?.press('Tab'); }, fits: (body) => JSON.stringify(body).includes('2.75') },
  translate: { path: '/translate', act: (f) => f.locator('input[type=text]').first().fill('the red cat is not sleeping .'), fits: (body) => body.text.includes('sleeping') },
  heads: { path: '/heads', act: (f) => f.locator('.headgrid input[role=switch]').first().click(), fits: (body) => body.off?.length === 1 },
  positions: { path: '/positions', act: (f) => f.locator('select').first().selectOption('rotary').catch(() => f.getByRole('radio', { name: 'rotary' }).click()), fits: (body) => body.kind === 'rotary' },
  transformer: { path: '/blocks', act: (f) => f.click('.tries button >> nth=0'), fits: (body) => body.edits?.length === 1 },
  language: { path: '/next', act: async (f) => { await f.click('text=Write on'); await f.waitForFunction(() => window.asked.some((a) => a.path === '/generate' && a.status)); }, fits: (body) => body.prompt.length > 40 },
  vision: {
    path: '/classify',
    act: async (f, page) => {
      const box = await f.locator('canvas.pad').boundingBox();
      await f.getByRole('button', { name: 'Empty', exact: true }).click();
      for (const [x0, y0, x1, y1] of [[0.2, 0.2, 0.8, 0.8], [0.8, 0.2, 0.2, 0.8]]) {
        await page.mouse.move(box.x + x0 * box.width, box.y + y0 * box.height);
        await page.mouse.down();
        await page.mouse.move(box.x + x1 * box.width, box.y + y1 * box.height, { steps: 12 });
        await page.mouse.up();
      }
    },
    fits: (body) => body.pixels.flat().reduce((a, b) => a + b, 0) > 20,
  },
};
for (const [name, { path, act, fits }] of Object.entries(deeds))
  test(`${name}: what a hand does is answered with the numbers of the program`, { timeout: 120_000 }, async () => {
    const page = await here.open(here.report);
    const frame = await bench(page, name);
    await last(frame, path);
    await act(frame, page);
    const { body, json } = await last(frame, path, fits);
    near(JSON.parse(json), JSON.parse(await qkv(['ask', '--models', here.folder, path.slice(1), body])), path);
    assert.equal(await frame.locator('.state.failed').count(), 0);
    await page.context().close();
  });

test('the model writes what the program writes, letter by letter', { timeout: 120_000 }, async () => {
  const page = await here.open(here.report);
  const frame = await bench(page, 'language');
  await last(frame, '/next');
  await frame.click('text=Write on');
  const { body, json } = await last(frame, '/generate');
  assert.equal(JSON.parse(json).text, JSON.parse(await qkv(['ask', '--models', here.folder, 'generate', body])).text);
  assert.ok((await frame.inputValue('textarea')).endsWith(JSON.parse(json).text));
  await page.context().close();
});

test('the report is small, paints without the engine, and starts it when a bench is touched', async () => {
  const file = join(here.folder, 'report/index.html');
  assert.ok((await stat(file)).size < 6e6);
  const html = await readFile(file, 'utf8');
  assert.ok(html.indexOf('id="qkv-engine"') > html.indexOf('class="claim'), 'what is read comes before the engine');
  const page = await here.open(here.report);
  const paint = await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
  console.log(`first paint after ${Math.round(await paint.jsonValue())} ms`);
  assert.deepEqual(await page.evaluate(() => [window.asked.length, window.workers, document.querySelectorAll('iframe[src]').length]), [0, 0, 0]);
  const frame = await bench(page, 'cues');
  await last(frame, '/cues');
  assert.equal(await frame.evaluate(() => window.workers), 1);
  await page.context().close();
});

test('a link restores the state of a bench, settings of a training too', { timeout: 120_000 }, async () => {
  const page = await here.open(here.report);
  const frame = await bench(page, 'training');
  await frame.getByRole('radio', { name: '8', exact: true }).click();
  await frame.locator('select').nth(1).selectOption('none');
  await frame.waitForFunction(() => /heads=8/.test(location.hash) && /positions=none/.test(location.hash));
  const state = await frame.evaluate(() => location.hash);
  await go(frame, state.replace('heads=8', 'heads=2'));
  await frame.waitForFunction(() => document.querySelector('[role=radio][aria-checked=true]').textContent === '2');
  assert.equal(await frame.locator('select').nth(1).inputValue(), 'none');
  await page.context().close();
});

test('a model from outside is read, shown and asked', { timeout: 120_000 }, async () => {
  const page = await here.open(here.report);
  const frame = await bench(page, 'cues');
  await last(frame, '/cues');
  const names = ['config.yaml', 'model.safetensors', 'images.json'];
  const files = await Promise.all(names.map(async (name) => ({ name, bytes: [...(await readFile(join(here.folder, 'vision', name)))] })));
  await frame.evaluate((files) => {
    const data = new DataTransfer();
    for (const { name, bytes } of files) data.items.add(new File([new Uint8Array(bytes)], name));
    window.dispatchEvent(new DragEvent('drop', { dataTransfer: data, cancelable: true }));
  }, files);
  await frame.waitForSelector('.brought.good');
  assert.match(await frame.textContent('.brought'), /^model is one of the models now/);
  assert.match(await frame.evaluate(() => location.hash), /^#vision\?.*model=model/);
  await page.context().close();
});

test('nothing was asked of a network, and nothing complained', () => assert.deepEqual(here.complaints, []));
