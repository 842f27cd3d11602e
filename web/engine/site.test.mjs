// `qkv site`: static files that work from a disk, from a plain web server, and after the server has gone.
import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { qkv } from '../tests/explorer.mjs';
import { bench, last, workshop } from './page.mjs';

let here, folder;
before(
  async () => {
    here = await workshop();
    folder = join(here.folder, 'site');
    await qkv(['site', '-o', folder, '--report', join(here.folder, 'report/index.html')]);
  },
  { timeout: 300_000 },
);
after(() => here?.close());

const types = { '.html': 'text/html', '.js': 'text/javascript', '.svg': 'image/svg+xml', '.webmanifest': 'application/manifest+json' };
/** A plain server of a folder, under a path as a project page has it. */
async function serve(folder) {
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, 'http://x').pathname.replace(/^\/qkv\//, '/').replace(/\/$/, '/index.html');
    try {
      response.writeHead(200, { 'content-type': types[extname(path)] ?? 'application/octet-stream' }).end(await readFile(join(folder, path)));
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const close = () => new Promise((done) => (server.closeAllConnections(), server.close(done)));
  return { address: `http://127.0.0.1:${server.address().port}/qkv/`, close };
}

test('start page, tour and benches open from a disk, in both languages, with links for every state', { timeout: 120_000 }, async () => {
  assert.deepEqual((await readdir(folder)).sort(), ['explore.html', 'icon.svg', 'index.html', 'manifest.webmanifest', 'sw.js', 'tour.html']);
  const page = await here.open(`file://${folder}/index.html`);
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'en');
  await page.click('#language');
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh-CN');
  await page.click('a[href*="#regression"]');
  await page.waitForSelector('main h1');
  assert.equal(await page.evaluate(() => document.documentElement.lang), 'zh-CN');
  await last(page, '/regress');
  // A link to a state restores it.
  await page.goto(`file://${folder}/explore.html#regression?h=1.25&kernel=boxcar&lang=en`);
  await page.reload();
  const { body } = await last(page, '/regress');
  assert.equal(JSON.parse(body).bandwidth, 1.25);
  assert.equal(JSON.parse(body).kernel, 'boxcar');
  // The models of the report are here.
  await page.goto(`file://${folder}/explore.html#language?lang=en`);
  await page.reload();
  await last(page, '/next');
  // And the way back.
  await page.click('a.brand');
  await page.waitForSelector('#language');
  await page.context().close();
});

test('the tour of a site opens its benches from the file beside it', { timeout: 120_000 }, async () => {
  assert.ok((await stat(join(folder, 'tour.html'))).size < (await stat(join(here.folder, 'report/index.html'))).size / 2);
  const page = await here.open(`file://${folder}/tour.html`);
  const frame = await bench(page, 'cues');
  await last(frame, '/cues');
  await page.context().close();
});

test('after the first visit it works without the server', { timeout: 120_000 }, async () => {
  const server = await serve(folder);
  const page = await here.open(server.address);
  const manifest = await (await fetch(`${server.address}manifest.webmanifest`)).json();
  assert.equal(manifest.start_url, 'index.html');
  await page.evaluate(() => navigator.serviceWorker.ready);
  await page.waitForFunction(async () => (await (await caches.open((await caches.keys())[0])).keys()).length >= 5);
  await server.close();
  await page.reload();
  await page.click('a[href*="#scores"]');
  await page.waitForSelector('main h1');
  await last(page, '/attend');
  await page.goto(`${server.address}tour.html`);
  const frame = await bench(page, 'positions');
  await last(frame, '/positions');
  await page.context().close();
});

test('nothing complained', () => assert.deepEqual(here.complaints, []));
