// Pictures of every bench in both languages and themes, at 1440 pixels, at phone width and as it prints, to be looked at:
//   QKV_BIN=../build/release/bin/qkv node screenshots.mjs --models DIR [--out DIR] [--only NAME,...] [--quick]
// The page is the bundle in dist/, so that a change needs no new program. --quick: English, light, 1440 pixels alone.
// --guide writes the pictures of docs/explorer.md instead.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { smaller } from './png.mjs';
import { chromium } from 'playwright-core';

const root = dirname(fileURLToPath(import.meta.url));
const { values: options } = parseArgs({
  options: { models: { type: 'string', default: 'runs' }, out: { type: 'string', default: '../build/screenshots' }, only: { type: 'string' }, quick: { type: 'boolean' }, guide: { type: 'boolean' }, state: { type: 'string' } },
});
// Each bench as one meets it, and the states that look different.
export const views = {
  cues: '', regression: '', 'regression-narrow': 'h=0.05', scores: '', 'scores-empty': 'lens=0%2C2%2C3%2C4', translate: '',
  'translate-forced': 'text=the+red+cat+is+not+sleeping+.&force=le+rouge+chat+ne+dort+pas+.&reference=le+chat+rouge+ne+dort+pas+.&rank=-1',
  heads: '', 'heads-off': 'off=%5B%5B%22cross%22%2C1%2C1%5D%2C%5B%22cross%22%2C2%2C2%5D%5D', positions: '', transformer: '',
  'transformer-edited': 'edits=%5B%7B%22name%22%3A%22cross%22%2C%22layer%22%3A2%2C%22do%22%3A%22flat%22%7D%5D', language: '', vision: '', training: '', compare: '',
};
// The pictures of the guide: what is in view, and what is clicked first. `@NAME` is the id of that model.
const guide = {
  cues: { state: 'cues?' }, regression: { state: 'regression?' }, scores: { state: 'scores?lens=0%2C2%2C3%2C4' },
  translate: { state: 'translate?text=the+red+cat+is+not+sleeping+.' }, heads: { state: 'heads?off=%5B%5B%22cross%22%2C2%2C1%5D%2C%5B%22cross%22%2C2%2C3%5D%5D' },
  positions: { state: 'positions?' }, transformer: { state: 'transformer?edits=%5B%7B%22name%22%3A%22cross%22%2C%22layer%22%3A2%2C%22do%22%3A%22flat%22%7D%5D' },
  language: { state: 'language?model=@sentences' }, long: { state: 'language?model=@long', click: ['A long text', 'Zoom in', 'Zoom in', 'Zoom in', 'Zoom in'], wait: 5000, scroll: '[data-figure="longmap"]' },
  vision: { state: 'vision?' }, training: { state: 'training?' }, compare: { state: 'compare?' },
};
const wanted = options.only ? options.only.split(',') : Object.keys(views);
mkdirSync(options.out, { recursive: true });

const server = spawn(process.env.QKV_BIN ?? join(root, '../build/release/bin/qkv'), ['serve', '--models', options.models, '--port', '0', '--no-training'], { stdio: ['ignore', 'pipe', 'pipe'] });
const address = await new Promise((found, failed) => {
  let text = '';
  const take = (data) => {
    text += data;
    const match = /http:\/\/127\.0\.0\.1:\d+\//.exec(text);
    if (match) found(match[0]);
  };
  server.stdout.on('data', take);
  server.stderr.on('data', take);
  server.on('exit', () => failed(new Error(`the server ended: ${text}`)));
});
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const page = { body: readFileSync(join(root, 'dist/index.html')), contentType: 'text/html; charset=utf-8', headers: { 'content-security-policy': readFileSync(join(root, 'dist/csp.txt'), 'utf8').trim() } };
const sizes = { wide: { width: 1440, height: 900 }, phone: { width: 390, height: 844 }, print: { width: 1000, height: 1400 } };
async function pictures() {
  const { models } = await (await fetch(`${address}api/v1/models`)).json();
  const context = await browser.newContext({ viewport: { width: 1280, height: 760 }, locale: 'en-US', colorScheme: 'light' });
  await context.route(address, (route) => route.fulfill(page));
  for (const [name, { state, click, wait, scroll }] of Object.entries(guide)) {
    if (options.only && !wanted.includes(name)) continue;
    const tab = await context.newPage();
    await tab.goto(`${address}#${state.replace(/@([\w-]+)/, (_, one) => models.find((m) => m.name === one)?.id ?? '')}&lang=en`);
    await tab.waitForSelector('.card, .state');
    await tab.waitForTimeout(600);
    for (const one of click ?? []) {
      await tab.locator('button', { hasText: one }).or(tab.getByRole('button', { name: one, exact: true })).last().click();
      await tab.waitForTimeout(1000);
    }
    await tab.waitForTimeout(wait ?? 300);
    await tab.waitForFunction(() => !document.querySelector('[aria-busy="true"], .waiting'), null, { timeout: 30_000 });
    if (scroll) await tab.locator(scroll).evaluate((one) => window.scrollTo(0, one.getBoundingClientRect().top + scrollY - 130));
    await tab.waitForTimeout(400);
    const shot = smaller(await tab.screenshot());
    writeFileSync(join(root, `../docs/pictures/explorer-${name}.png`), shot);
    console.log(`explorer-${name}.png: ${shot.length} bytes`);
    await tab.close();
  }
}

try {
  if (options.guide) await pictures();
  for (const [size, viewport] of Object.entries(sizes)) {
    if (options.guide || (options.quick && size !== 'wide')) continue;
    for (const theme of size === 'wide' && !options.quick ? ['light', 'dark'] : ['light']) {
      const context = await browser.newContext({ viewport, deviceScaleFactor: 1, locale: 'en-US', colorScheme: theme });
      await context.route(address, (route) => route.fulfill(page));
      for (const lang of options.quick || size === 'print' ? ['en'] : ['en', 'zh']) {
        for (const name of wanted) {
          const tab = await context.newPage();
          tab.on('console', (message) => message.type() === 'error' && console.error(`${name}: ${message.text()}`));
          tab.on('pageerror', (error) => console.error(`${name}: ${error.message}`));
          if (size === 'print') await tab.emulateMedia({ media: 'print' });
          const state = options.state ?? views[name] ?? '';
          await tab.goto(`${address}#${name.split('-')[0]}?${state}&lang=${lang}`);
          await tab.waitForSelector('.card, .state');
          await tab.waitForTimeout(400);
          await tab.waitForFunction(() => !document.querySelector('[aria-busy="true"], .waiting'), null, { timeout: 30_000 }).catch(() => console.error(`${name}: still waiting`));
          await tab.waitForTimeout(200);
          const wide = await tab.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          if (wide > 0) console.error(`${name} ${size} ${lang}: ${wide} pixels too wide`);
          await tab.screenshot({ path: join(options.out, `${name}-${size}-${theme}-${lang}.png`), fullPage: true });
          await tab.close();
        }
      }
      await context.close();
    }
  }
} finally {
  await browser.close();
  const ended = new Promise((done) => server.on('exit', done));
  server.kill('SIGINT');
  await ended;
}
