// Every bench, used as a person would, its numbers compared with the command line's.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { answerTo, explorer } from './explorer.mjs';

let here;
before(async () => (here = await explorer()), { timeout: 120_000 });
after(() => here?.close());
const near = (a, b, tolerance = 1e-5) => assert.ok(Math.abs(a - b) <= tolerance * (1 + Math.abs(b)), `${a} is not ${b}`);

const names = ['cues', 'regression', 'translate', 'positions', 'language', 'vision', 'training', 'compare'];
for (const lang of ['en', 'zh']) {
  test(`all benches open in ${lang}`, async () => {
    for (const name of names) {
      const page = await here.open(`${name}?lang=${lang}`);
      await page.waitForSelector('.card, .state.training');
      await page.waitForTimeout(300);
      assert.equal(await page.locator('.state.failed').count(), 0, `${name} fails: ${await page.locator('.state.failed').allTextContents()}`);
      assert.equal(await page.evaluate(() => document.documentElement.lang), lang === 'zh' ? 'zh-CN' : 'en');
      const title = await page.locator('main h1').textContent();
      assert.equal(/[\u4e00-\u9fff]/.test(title), lang === 'zh', title);
      await page.close();
    }
    assert.deepEqual(here.complaints, []);
  });
}

test('a link opens the same view again', async () => {
  const page = await here.open('positions?lang=en');
  await page.getByRole('radio', { name: 'rotary' }).click();
  await page.waitForFunction(() => location.hash.includes('kind=rotary'));
  const link = await page.evaluate(() => location.hash.slice(1));
  const again = await here.open(link);
  assert.equal(await again.getByRole('radio', { name: 'rotary' }).getAttribute('aria-checked'), 'true');
  await page.close();
  await again.close();
});

test('regression: dragging draws as it goes', async () => {
  const page = await here.open('regression?lang=en');
  await page.waitForSelector('.scatter svg .fit');
  const box = await page.locator('.scatter svg').first().boundingBox();
  await page.evaluate(() => {
    window.frames_ = [];
    const tick = (t) => (window.frames_.push(t), requestAnimationFrame(tick));
    requestAnimationFrame(tick);
  });
  const point = await page.locator('.scatter circle').first().boundingBox();
  await page.mouse.move(point.x + point.width / 2, point.y + point.height / 2);
  await page.mouse.down();
  for (let i = 0; i < 60; ++i) await page.mouse.move(box.x + box.width * (0.2 + i / 120), box.y + box.height * (0.3 + 0.2 * Math.sin(i / 8)));
  await page.mouse.up();
  const rate = await page.evaluate(() => {
    const f = window.frames_;
    return (1000 * (f.length - 1)) / (f[f.length - 1] - f[0]);
  });
  console.log(`dragging: ${rate.toFixed(1)} frames per second`);
  assert.ok(rate > 10, `${rate} frames per second`); // a busy machine is slow; docs/explorer.md has the measured rate
  await page.close();
});

test('language: a clicked token is written', async () => {
  const page = await here.open('language?lang=en');
  const bar = page.locator('[data-figure="next"] .bars button').first();
  await bar.waitFor();
  const before = await page.getByLabel('text', { exact: true }).inputValue();
  await bar.click();
  await page.waitForFunction((old) => document.querySelector('input[type=text]').value.length > old.length, before);
  await page.close();
});

test('vision: drawing changes the answer', async () => {
  const page = await here.open('vision?lang=en');
  const pad = page.locator('canvas.pad');
  await page.locator('[data-figure="classes"] .bars').waitFor();
  const box = await pad.boundingBox();
  const { sent, got } = await answerTo(page, '/classify', async () => {
    await page.mouse.move(box.x + 40, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + 200, box.y + 200, { steps: 8 });
    await page.mouse.up();
  });
  assert.equal(sent.pixels.length, 28);
  near(got.answers.reduce((sum, a) => sum + a.probability, 0), 1, 1e-4);
  await page.close();
});

test('training: the run and its saved attention are there', async () => {
  const page = await here.open('training?lang=en');
  await page.locator('[data-figure="metrics"]').waitFor();
  await page.getByLabel('run').first().selectOption({ label: 'translation' });
  await page.locator('[data-figure="attention"]').waitFor();
  await page.close();
});

test('nothing was complained about, and nobody else was asked', () => assert.deepEqual(here.complaints, []));
