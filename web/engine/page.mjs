// What the tests of pages with an engine share: small models, a report that carries them, and a browser without a network.
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { qkv } from '../tests/explorer.mjs';

const one = (folder, preset, name, warmup, ...more) => qkv(['train', '--preset', preset, '--log-format', 'none', '--warmup', warmup, '-o', join(folder, name), ...more]);

/** A folder with models of all three tasks, the report of a short tour with them inside, and a browser. */
export async function workshop() {
  const folder = await mkdtemp(join(tmpdir(), 'qkv-engine-'));
  await one(folder, 'transformer', 'translation', '10', '--corpus-size', '2000', '--epochs', '2', '--layers', '2');
  await one(folder, 'lm', 'language', '2', '--corpus-size', '1000', '--epochs', '1');
  await one(folder, 'vit', 'vision', '10', '--picture-count', '800', '--epochs', '1', '--layers', '2');
  const models = ['translation', 'language', 'vision'].flatMap((name) => ['--model', join(folder, name)]);
  await qkv(['tour', 'cues', ...models, '--out', join(folder, 'report')]);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
  const complaints = [];

  /** Opens a page; every question to its engine and the answer are kept in `asked` of the frame that asks. */
  const open = async (address, { lang = 'en', before, ...options } = {}) => {
    const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, locale: lang === 'zh' ? 'zh-CN' : 'en-US', offline: address.startsWith('file:'), ...options });
    await context.addInitScript(() => {
      window.asked = [];
      window.workers = 0;
      const Plain = window.Worker;
      window.Worker = class extends Plain {
        constructor(...all) {
          super(...all);
          ++window.workers;
        }
        postMessage(message, ...rest) {
          if (message.type === 'ask') window.asked.push({ ...message });
          super.postMessage(message, ...rest);
        }
        set onmessage(handle) {
          super.onmessage = (event) => {
            const known = event.data.type === 'answer' && window.asked.find((a) => a.id === event.data.id);
            if (known) Object.assign(known, { status: event.data.status, json: event.data.json });
            handle(event);
          };
        }
      };
    });
    if (before) await context.addInitScript(before);
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    context.on('request', (request) => !/^(file|data|blob|about):/.test(request.url()) && address.startsWith('file:') && complaints.push(`request to ${request.url()}`));
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(address);
    return page;
  };
  const report = `file://${join(folder, 'report/index.html')}`;
  const close = async () => {
    await browser.close();
    await rm(folder, { recursive: true, force: true });
  };
  return { folder, report, browser, complaints, open, close };
}

/** Touches a bench's button in a report; gives the frame with the bench. */
export async function bench(page, name) {
  await page.click(`[data-bench="#${name}"]`);
  const frame = await (await page.waitForSelector('dialog.explorer iframe')).contentFrame();
  await frame.waitForSelector('main h1');
  return frame;
}

/** Waits until the engine has answered everything, and gives the last answer for a path. */
export async function last(frame, path, fits = () => true) {
  const settled = () => frame.waitForFunction((path) => window.asked.some((a) => a.path === path && a.status) && window.asked.every((a) => a.status), path);
  await settled();
  await frame.waitForTimeout(250); // typing is followed with a pause
  await settled();
  const all = (await frame.evaluate(() => window.asked)).filter((a) => a.path === path && a.status === 200 && fits(a.body ? JSON.parse(a.body) : {}));
  assert.ok(all.length, `no answer for ${path}`);
  return all[all.length - 1];
}

/** Opens a state; the frame's own address may not be changed by assignment in a page from a disk. */
export const go = (frame, state) => frame.evaluate((state) => void (history.replaceState(null, '', state), dispatchEvent(new HashChangeEvent('hashchange'))), state);

/** As a person drops files: [{ name, text }]. */
export const drop = (frame, files) =>
  frame.evaluate((files) => {
    const data = new DataTransfer();
    for (const { name, text, repeat } of files) data.items.add(new File([repeat ? text.repeat(repeat) : text], name));
    window.dispatchEvent(new DragEvent('drop', { dataTransfer: data, cancelable: true }));
  }, files);

export function near(a, b, where = '') {
  if (typeof a === 'number' && typeof b === 'number') return assert.ok(Math.abs(a - b) <= 1e-5 * Math.max(1, Math.abs(b)), `${where}: ${a} and ${b}`);
  if (/\.(session|command)$/.test(where)) return undefined;
  assert.equal(typeof a, typeof b, where);
  if (!a || typeof a !== 'object') return assert.equal(a, b, where);
  assert.deepEqual(Object.keys(a).sort(), Object.keys(b).sort(), where);
  for (const key of Object.keys(b)) near(a[key], b[key], `${where}.${key}`);
}
