// `qkv inspect -o x.html`: the page in one file, opened from disk without a server or a network.
import assert from 'node:assert/strict';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { qkv } from './explorer.mjs';

let folder, browser;
const complaints = [];
const sentence = 'the red cat sleeps .';
const given = 'le chat rouge dort .';
const train = (preset, name, ...more) => qkv(['train', '--preset', preset, '--log-format', 'none', '--warmup', '0', '-o', join(folder, name), '--epochs', '1', ...more]);
before(
  async () => {
    folder = await mkdtemp(join(tmpdir(), 'qkv-file-'));
    await train('transformer', 'transformer', '--corpus-size', '500', '--layers', '2', '--hidden', '16', '--heads', '2', '--ffn', '16');
    await train('bahdanau', 'bahdanau', '--corpus-size', '500', '--hidden', '16', '--embed', '16');
    await train('lm', 'language', '--corpus-size', '500');
    browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
  },
  { timeout: 240_000 },
);
after(async () => {
  await browser?.close();
  await rm(folder, { recursive: true, force: true });
});

const write = (model, name, ...words) => qkv(['inspect', '--model', join(folder, model), '-o', join(folder, name), ...words]);
async function open(name) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, offline: true });
  const page = await context.newPage();
  context.on('request', (request) => {
    if (request.url() !== `file://${join(folder, name)}` && !/^(data|blob):/.test(request.url())) complaints.push(`request to ${request.url()}`);
  });
  page.on('console', (message) => message.type() === 'error' && complaints.push(`${name}: ${message.text()}`));
  page.on('pageerror', (error) => complaints.push(`${name}: ${error.message}`));
  await page.goto(`file://${join(folder, name)}`);
  await page.waitForSelector('main h1');
  await page.waitForSelector('.card');
  return page;
}
/** What the file has recorded for a path. */
const recorded = (page, path) =>
  page.evaluate((path) => JSON.parse(document.getElementById('qkv-recorded').textContent).requests.filter((one) => one.path === path), path);

test('heads of a Transformer: the maps of the command line, and nothing asked of anybody', async () => {
  const said = await write('transformer', 'heads.html', '--kind', 'cross', '--layer', '2', '--head', '1', '--target', given, sentence);
  assert.match(said, /heads\.html\n$/);
  const page = await open('heads.html');
  await page.waitForSelector('.headgrid canvas, .headgrid svg');
  assert.match(await page.evaluate(() => location.hash), /^#heads\?.*layer=2/);
  assert.equal(await page.locator('.headgrid .one.on').count(), 1);
  assert.equal(await page.locator('.state.failed').count(), 0, (await page.locator('.state.failed').allTextContents()).join());
  const json = JSON.parse(await qkv(['inspect', '--model', join(folder, 'transformer'), '--json', '--target', given, sentence]));
  const [maps] = await recorded(page, '/maps');
  const cross = maps.answer.maps.find((map) => map.name === 'cross' && map.layer === 2 && map.head === 1);
  assert.deepEqual(cross.values.map((row) => row.map(Math.fround)), json.cross[1][0].map((row) => row.map(Math.fround)));
  // Other parts were recorded too; a head that is switched off was not: the engine in the file answers.
  await page.getByRole('radio', { name: /encoder self|^encoder/i }).first().click();
  await page.waitForTimeout(300);
  assert.equal(await page.locator('.state.failed').count(), 0);
  await page.locator('.headgrid input[role=switch]').first().click();
  await page.locator('[data-figure="outcome"] dt', { hasText: 'without 1' }).waitFor();
  assert.equal(await page.locator('.state.failed').count(), 0);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test('a Bahdanau model opens in Translate, a language model in Language', async () => {
  await write('bahdanau', 'bahdanau.html', sentence);
  let page = await open('bahdanau.html');
  assert.match(await page.evaluate(() => location.hash), /^#translate\?/);
  assert.equal(await page.locator('.state.failed').count(), 0);
  await page.context().close();
  await write('language', 'language.html', '--lang', 'zh', 'the cat ');
  page = await open('language.html');
  assert.match(await page.evaluate(() => location.hash), /^#language\?/);
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh-CN');
  assert.equal(await page.locator('.state.failed').count(), 0);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test('a long text stays a bounded file, and the engine computes what it leaves out', async () => {
  const words = (count) => Array.from({ length: count }, (_, i) => ['the', 'red', 'cat', 'sleeps'][i % 4]).join(' ');
  const openLong = async (count, most) => {
    const text = words(count);
    const note = await write('transformer', `long-${count}.html`, '--target', 'le chat dort .', '--kind', 'encoder', text);
    assert.ok((await stat(join(folder, `long-${count}.html`))).size < most);
    const page = await open(`long-${count}.html`);
    await page.waitForSelector('canvas');
    await page.waitForTimeout(1500);
    assert.equal(await page.locator('.state.failed').count(), 0, (await page.locator('.state.failed').allTextContents()).join());
    return page;
  };
  const whole = await openLong(400, 13_500_000); // every weight of it fits
  assert.doesNotMatch(await whole.locator('footer').textContent(), /Not in this file/);
  await whole.context().close();
  const part = await openLong(1500, 13_500_000);
  for (let i = 0; i < 6; ++i) await part.getByRole('button', { name: 'Zoom in', exact: true }).first().click();
  await part.waitForFunction(() => /Every cell is one exact weight/.test(document.querySelector('main').textContent));
  await part.waitForTimeout(3000); // a part that the engine could not compute would be said by now
  assert.equal(await part.locator('.state.failed').count(), 0, (await part.locator('.state.failed').allTextContents()).join());
  assert.deepEqual(complaints, []);
  await part.context().close();
});
