// The engine in the page: a report opened from disk, without a server or a network. Its numbers are those of the program.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { qkv } from '../tests/explorer.mjs';

let folder, browser;
const complaints = [];
const book = process.env.QKV_FRA ?? '/usr/share/qkv/fra.txt'; // the book's file, which is not ours to give

before(
  async () => {
    folder = await mkdtemp(join(tmpdir(), 'qkv-engine-'));
    await qkv(['train', '--preset', 'transformer', '--log-format', 'none', '--warmup', '10', '-o', join(folder, 'small'), '--corpus-size', '3000', '--epochs', '2']);
    await qkv(['tour', 'cues', '--model', join(folder, 'small'), '--out', join(folder, 'report')]);
    browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
  },
  { timeout: 300_000 },
);
after(async () => {
  await browser?.close();
  await rm(folder, { recursive: true, force: true });
});

/** Opens a file; every question to the engine and its answer are kept in `asked` of the frame that asks. */
async function open(path, watch = () => {
  window.asked = [];
  const Plain = window.Worker;
  window.Worker = class extends Plain {
    postMessage(message, ...rest) {
      if (message.type === 'ask') window.asked.push({ ...message });
      super.postMessage(message, ...rest);
    }
    set onmessage(handle) {
      super.onmessage = (event) => {
        const one = event.data.type === 'answer' && window.asked.find((a) => a.id === event.data.id);
        if (one) Object.assign(one, { status: event.data.status, json: event.data.json });
        handle(event);
      };
    }
  };
}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, offline: true, locale: 'en-US' });
  await context.addInitScript(watch);
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  context.on('request', (request) => !/^(file|data|blob|about):/.test(request.url()) && complaints.push(`request to ${request.url()}`));
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(`file://${path}`);
  return page;
}
const bench = async (page, name) => {
  await page.click(`[data-bench="#${name}"]`);
  const frame = await (await page.waitForSelector('dialog.explorer iframe')).contentFrame();
  await frame.waitForSelector('main h1');
  return frame;
};
/** The first answer for a path, and the program's to the same question. */
async function both(frame, path, fits = () => true) {
  await frame.waitForFunction((path) => window.asked?.some((a) => a.path === path && a.status), path, { timeout: 60_000 });
  const all = (await frame.evaluate(() => window.asked)).filter((a) => a.path === path && a.status && fits(JSON.parse(a.body)));
  const one = all[all.length - 1];
  assert.equal(one.status, 200, one.json);
  const ours = JSON.parse(one.json);
  const native = JSON.parse(await qkv(['ask', '--models', folder, path.slice(1), one.body]));
  return { ours, native };
}
function near(a, b, where = '') {
  if (typeof a === 'number' && typeof b === 'number') return assert.ok(Math.abs(a - b) <= 1e-5 * Math.max(1, Math.abs(b)), `${where}: ${a} and ${b}`);
  if (/\.(session|command)$/.test(where)) return undefined;
  assert.equal(typeof a, typeof b, where);
  if (!a || typeof a !== 'object') return assert.equal(a, b, where);
  assert.deepEqual(Object.keys(a).sort(), Object.keys(b).sort(), where);
  for (const key of Object.keys(b)) near(a[key], b[key], `${where}.${key}`);
}

for (const [name, path] of [['cues', '/cues'], ['regression', '/regress'], ['scores', '/attend'], ['positions', '/positions'], ['translate', '/translate'], ['heads', '/heads'], ['transformer', '/blocks']])
  test(`${name}: the numbers of the program`, { timeout: 180_000 }, async () => {
    const page = await open(join(folder, 'report/index.html'));
    const frame = await bench(page, name);
    const { ours, native } = await both(frame, path);
    near(ours, native, path);
    await page.context().close();
  });

test('the report is small and paints without the engine', async () => {
  assert.ok((await stat(join(folder, 'report/index.html'))).size < 6e6);
  const page = await open(join(folder, 'report/index.html'));
  assert.equal(await page.evaluate(() => window.asked.length), 0);
  await page.context().close();
});

test('a training in the page: losses, translations, and no long frame', { timeout: 300_000 }, async () => {
  const file = join(folder, 'training.html');
  let html = await readFile(join(folder, 'report/index.html'), 'utf8');
  await writeFile(file, html);
  const page = await open(file);
  const frame = await bench(page, 'training');
  if (existsSync(book)) {
    // As a person drops the file on the page.
    const text = (await readFile(book, 'utf8')).split('\n').slice(0, 700).join('\n');
    await frame.evaluate((text) => {
      const data = new DataTransfer();
      data.items.add(new File([text], 'fra.txt'));
      window.dispatchEvent(new DragEvent('drop', { dataTransfer: data, cancelable: true }));
    }, text);
    await frame.waitForSelector('text=601 lines of fra.txt');
  }
  await frame.evaluate(() => {
    window.longest = 0;
    let last = performance.now();
    const tick = (now) => {
      window.longest = Math.max(window.longest, now - last);
      last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  const start = Date.now();
  await frame.click('button.primary');
  await frame.waitForSelector('[data-state="done"]', { timeout: 240_000 });
  const seconds = (Date.now() - start) / 1000;
  const line = await frame.textContent('.live .num');
  const loss = Number(/loss ([\d.]+)/.exec(line)[1]);
  const longest = await frame.evaluate(() => window.longest);
  const written = await frame.$$eval('.translations li', (all) => all.map((li) => li.textContent));
  console.log(JSON.stringify({ seconds, loss, longest, written }));
  if (existsSync(book)) {
    assert.ok(loss >= 0.03 && loss <= 0.034, line);
    assert.match(written[0], /^go \. → va !.*✓/);
    assert.match(written[3], /^i'm home \. → je suis chez moi \..*✓/);
  }
  assert.ok(longest < 100, `a frame took ${longest} ms`);
  assert.ok(seconds < 90, `the training took ${seconds} s`);
  await page.context().close();
});

test('nothing was asked of a network, and nothing complained', () => assert.deepEqual(complaints, []));
