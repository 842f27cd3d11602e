// What the page tests share: small models, a server on a free port, and a browser that counts complaints.
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { chromium } from 'playwright-core';

const run = promisify(execFile);
export const program = process.env.QKV_BIN;
if (!program || !existsSync(program)) throw new Error('QKV_BIN must name the program');

export const qkv = async (args, options = {}) => (await run(program, args, { maxBuffer: 1 << 26, ...options })).stdout;

/** Small models of all three tasks, a server that shows them, and a page. `close` ends all of it. */
export async function explorer() {
  const folder = await mkdtemp(join(tmpdir(), 'qkv-page-'));
  const train = (preset, name, ...more) => qkv(['train', '--preset', preset, '--log-format', 'none', '--warmup', '10', '-o', join(folder, name), ...more]);
  await train('transformer', 'translation', '--corpus-size', '3000', '--epochs', '3', '--attention-every', '1');
  await train('lm', 'language', '--corpus-size', '1500', '--epochs', '1');
  await train('vit', 'vision', '--picture-count', '2000', '--epochs', '1');

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
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, locale: 'en-US' });
  const complaints = [];
  context.on('request', (request) => {
    if (!request.url().startsWith(address) && !/^(data|blob|about):/.test(request.url())) complaints.push(`request to ${request.url()}`);
  });
  const open = async (state) => {
    const page = await context.newPage();
    page.on('console', (message) => message.type() === 'error' && complaints.push(`${state}: ${message.text()}`));
    page.on('pageerror', (error) => complaints.push(`${state}: ${error.message}`));
    await page.goto(`${address}#${state}`);
    await page.waitForSelector('main h1');
    return page;
  };
  const close = async () => {
    await browser.close();
    const ended = new Promise((done) => server.on('exit', done));
    server.kill('SIGINT');
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  return { address, folder, open, close, complaints };
}

/** The answer to the next request for a path that `action` causes. */
export async function answerTo(page, path, action) {
  const [response] = await Promise.all([page.waitForResponse((r) => r.url().includes(`/api/v1${path}`) && r.ok()), action()]);
  return { sent: response.request().postDataJSON(), got: await response.json() };
}
