// What the page tests share: small models, a server on a free port, and a browser that counts complaints.
import { execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';

const run = promisify(execFile);
export const program = process.env.QKV_BIN;
if (!program || !existsSync(program)) throw new Error('QKV_BIN must name the program');

export const qkv = async (args, options = {}) => (await run(program, args, { maxBuffer: 1 << 26, ...options })).stdout;

/** Small models of all three tasks in a folder; the language model reads 4,096 tokens. `QKV_MODELS` names trained ones. */
async function train(folder) {
  const one = (preset, name, warmup, ...more) => qkv(['train', '--preset', preset, '--log-format', 'none', '--warmup', warmup, '-o', join(folder, name), ...more]);
  await one('transformer', 'translation', '10', '--corpus-size', '3000', '--epochs', '4', '--attention-every', '1');
  await one('lm', 'language', '2', '--corpus-size', '1000', '--epochs', '1', '--context', '4096', '--batch-rows', '1', '--hidden', '32', '--ffn', '64');
  await one('vit', 'vision', '10', '--picture-count', '1500', '--epochs', '1');
}

/** The models, a server that shows them, and a browser. `close` ends all of it. */
export async function explorer({ models = process.env.QKV_MODELS } = {}) {
  const folder = models ?? (await mkdtemp(join(tmpdir(), 'qkv-page-')));
  if (!models) await train(folder);
  const server = spawn(program, ['serve', '--models', folder, '--port', '0'], { stdio: ['ignore', 'pipe', 'pipe'] });
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
  const complaints = [];
  const context = async (options = {}) => {
    const made = await browser.newContext({ viewport: { width: 1360, height: 900 }, locale: 'en-US', ...options });
    made.on('request', (request) => {
      if (!request.url().startsWith(address) && !/^(data|blob|about):/.test(request.url())) complaints.push(`request to ${request.url()}`);
    });
    if (process.env.QKV_PAGE) {
      // A bundle under work, in place of the one in the program.
      const page = { body: readFileSync(join(process.env.QKV_PAGE, 'index.html')), contentType: 'text/html', headers: { 'content-security-policy': readFileSync(join(process.env.QKV_PAGE, 'csp.txt'), 'utf8').trim() } };
      await made.route(address, (route) => route.fulfill(page));
    }
    return made;
  };
  const usual = await context();
  const open = async (state, where = usual) => {
    const page = await where.newPage();
    page.setDefaultTimeout(15_000);
    page.on('console', (message) => message.type() === 'error' && complaints.push(`${state.slice(0, 80)}: ${message.text()}`));
    page.on('pageerror', (error) => complaints.push(`${state.slice(0, 80)}: ${error.message}`));
    await page.goto(`${address}#${state}`);
    await page.waitForSelector('main h1');
    return page;
  };
  const close = async () => {
    await browser.close();
    const ended = new Promise((done) => server.on('exit', done));
    server.kill('SIGINT');
    await ended;
    if (!models) await rm(folder, { recursive: true, force: true });
  };
  const list = async () => (await (await fetch(`${address}api/v1/models`)).json()).models;
  return { address, browser, folder, open, close, context, complaints, list };
}

/** The answer to the next request for a path that `action` causes, or to the next one whose body `fits`. */
export async function answerTo(page, path, action, fits = () => true) {
  const [response] = await Promise.all([page.waitForResponse((r) => r.url().endsWith(`/api/v1${path}`) && r.ok() && fits(r.request().postDataJSON())), action()]);
  return { sent: response.request().postDataJSON(), got: await response.json() };
}

/** What the command line under a figure prints, when it is pasted into a shell. */
export async function commanded(page, figure) {
  const card = page.locator(`[data-figure="${figure}"]`);
  const opener = card.locator('.export button', { hasText: 'command' });
  await opener.click();
  const line = await card.locator('.commandline code').textContent();
  await opener.click();
  return (await run('bash', ['-c', `qkv() { "$QKV_BIN" "$@"; }; ${line}`], { maxBuffer: 1 << 26 })).stdout;
}

/** Opens a bench and gives its page with the first answer to a path. */
export async function opened(here, state, path, fits) {
  const page = await here.open('cues?lang=en');
  const answer = await answerTo(page, path, () => page.goto(`${here.address}#${state}`), fits);
  return { page, ...answer };
}

/** What is drawn when nothing is under way. */
export const settled = (page) => page.waitForFunction(() => !document.querySelector('[aria-busy="true"], .waiting'), null, { timeout: 20_000 });

/** Frames per second that the page draws while `action` runs. */
export async function frameRate(page, action) {
  await page.evaluate(() => {
    window.frames_ = [];
    const tick = (time) => {
      window.frames_.push(time);
      window.ticking_ = requestAnimationFrame(tick);
    };
    window.ticking_ = requestAnimationFrame(tick);
  });
  await action();
  return page.evaluate(() => {
    cancelAnimationFrame(window.ticking_);
    const f = window.frames_;
    return (1000 * (f.length - 1)) / (f[f.length - 1] - f[0]);
  });
}
