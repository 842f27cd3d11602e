import { chromium } from 'playwright-core';
import { spawn } from 'node:child_process';
const server = spawn('/work/h21b/build/release/bin/qkv', ['serve', '--models', '/tmp/h21b/m', '--port', '7999', '--no-training'], { stdio: 'ignore' });
process.on('exit', () => server.kill());
await new Promise((d) => setTimeout(d, 1500));
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
export async function open(url, opts = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, locale: 'en-US', ...opts });
  await context.exposeFunction('nativeAsk', async (method, path, body, lang) => {
    const r = await fetch(`http://127.0.0.1:7999/api/v1${path}${method === 'GET' ? (path.includes('?') ? '&' : '?') + 'lang=' + lang : ''}`, { method, headers: method === 'GET' ? {} : { 'content-type': 'application/json' }, body: method === 'GET' ? undefined : body });
    return { status: r.status, json: await r.text() };
  });
  await context.addInitScript(() => {
    window.Worker = class {
      postMessage(m) {
        if (m.type === 'start') setTimeout(() => this.onmessage({ data: { type: 'ready' } }), 50);
        if (m.type === 'ask') window.nativeAsk(m.method, m.path, m.body, m.lang).then((a) => this.onmessage({ data: { type: 'answer', id: m.id, ...a } }));
      }
      terminate() {}
    };
  });
  const page = await context.newPage();
  page.on('console', (m) => m.type() === 'error' && console.log('console:', m.text()));
  page.on('pageerror', (e) => console.log('error:', e.message));
  await page.goto(url);
  return page;
}
export const done = async () => { await browser.close(); process.exit(0); };
