// The links below the figures of a lab's report open benches with the same numbers.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { answerTo, program, qkv } from './explorer.mjs';

let folder, report, server, browser, page;
before(
  async () => {
    folder = await mkdtemp(join(tmpdir(), 'qkv-links-'));
    await qkv(['tour', '10.2', '10.3', '-o', join(folder, 'report')]);
    report = await readFile(join(folder, 'report', 'index.html'), 'utf8');
    server = spawn(program, ['serve', '--models', folder, '--port', '0', '--no-training'], { stdio: ['ignore', 'pipe', 'ignore'] });
    const address = await new Promise((found) => server.stdout.once('data', (data) => found(String(data).trim())));
    browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
    page = await (await browser.newContext({ locale: 'en-US' })).newPage();
    await page.goto(`${address}#cues`);
    await page.waitForSelector('main h1');
  },
  { timeout: 240_000 },
);
after(async () => {
  await browser?.close();
  const ended = new Promise((done) => server.on('exit', done));
  server?.kill('SIGINT');
  await ended;
  await rm(folder, { recursive: true, force: true });
});

/** The address below a figure of the report. */
const link = (figure) => {
  const found = /class="explore">.*?href="http:\/\/127\.0\.0\.1:7800\/(#[^"]*)"/s.exec(report.slice(report.indexOf(`id="${figure}`)));
  return found[1].replaceAll('&amp;', '&');
};
const opened = (path, figure) => answerTo(page, path, () => page.evaluate((to) => (location.hash = to), link(figure)));
const near = (a, b) => assert.ok(Math.abs(a - b) <= 1e-9 * (1 + Math.abs(b)), `${a} is not ${b}`);

test('regression: the points and the width of the figure, and the fit of the command line', async () => {
  const data = join(folder, 'nw.csv');
  await qkv(['data', 'nadaraya-watson', '-o', data]);
  const points = (await readFile(data, 'utf8')).trim().split('\n').slice(1).map((line) => line.split(',').map(Number));
  const { sent, got } = await opened('/regress', 'kernel-regression-plain-fit');
  assert.deepEqual(sent.x.map((x, i) => [x, sent.y[i]]), points);
  assert.equal(sent.bandwidth, 1);
  const at = [0, 1.5, 2.2, 4.9];
  const json = JSON.parse(await qkv(['regress', '--data', data, '--x', 'x', '--y', 'y', '--bandwidth', '1', '--json', ...at.flatMap((x) => ['--at', String(x)])]));
  const said = JSON.stringify(json);
  at.forEach((x) => {
    const fit = got.fit[got.grid.findIndex((g) => Math.abs(g - x) < 1e-9)];
    const found = said.match(/-?\d+\.\d+(e-?\d+)?/g).map(Number).some((n) => Math.abs(n - fit) <= 1e-9 * (1 + Math.abs(fit)));
    assert.ok(found, `${fit} at ${x} is not in ${said}`);
  });
  await page.waitForSelector('.scatter svg .fit');
});

test('scores: the weights that the lab claims', async () => {
  const { sent, got } = await opened('/attend', 'scoring-equal-keys');
  assert.deepEqual(sent.lens, [2, 6]);
  const weights = got.steps[3].values;
  weights[0].forEach((w, j) => near(Math.fround(w), j < 2 ? 0.5 : 0));
  weights[1].forEach((w, j) => near(Math.fround(w), j < 6 ? Math.fround(1 / 6) : 0));
  got.steps[4].values.forEach((row, i) => row.forEach((value, j) => assert.ok(Math.abs(value - (i ? 10 : 2) - j) < 1e-4)));
});
