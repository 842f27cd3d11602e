import { chromium } from 'playwright-core';
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
const context = await browser.newContext({ viewport: { width: 1360, height: 900 }, locale: 'en-US' });
await context.addInitScript(() => {
  const Plain = window.Blob;
  const script = 'WebAssembly.Memory.prototype.grow = function () { throw new RangeError("no memory"); };';
  window.Blob = function (parts, options) { return new Plain(options?.type === 'text/javascript' ? [script, ...parts] : parts, options); };
  window.Blob.prototype = Plain.prototype;
  window.asked = [];
  const W = window.Worker;
  window.Worker = class extends W { postMessage(m, ...r) { if (m.type === 'ask') window.asked.push({ ...m, t: performance.now() }); super.postMessage(m, ...r); } set onmessage(h) { super.onmessage = (e) => { const k = e.data.type === 'answer' && window.asked.find((a) => a.id === e.data.id); if (k) Object.assign(k, { status: e.data.status, json: e.data.json.slice(0, 200) }); h(e); }; } };
});
const page = await context.newPage();
await page.goto('file:///tmp/h21b/rep/index.html');
await page.click('[data-bench="#heads"]');
const f = await (await page.waitForSelector('dialog.explorer iframe')).contentFrame();
await f.waitForSelector('main h1');
await page.waitForTimeout(6000);
for (const n of [20, 100, 400]) {
  await f.locator('input[type=text]').first().fill('the red cat sleeps in the big house . '.repeat(n));
  await page.waitForTimeout(8000);
  console.log(n, JSON.stringify((await f.evaluate(() => window.asked)).map((a) => [a.path, a.status, a.status === 200 ? '' : a.json])).slice(0, 1500));
}
await page.screenshot({ path: '/tmp/h21b/t/mem.png' });
await browser.close();
