// Bad input in a page with an engine: one clear sentence in the page's language, and a page that lives on.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { bench, drop, go, last, workshop } from './page.mjs';

let here;
before(async () => void (here = await workshop()), { timeout: 300_000 });
after(() => here?.close());

const both = { en: 'English', zh: 'Chinese' };
/** The page still answers. */
async function lives(frame) {
  const asked = await frame.evaluate(() => window.asked.length);
  await go(frame, '#cues?x=0.4');
  await frame.waitForFunction((asked) => window.asked.slice(asked).some((a) => a.path === '/cues' && a.status === 200), asked);
}

for (const [lang, name] of Object.entries(both)) {
  const words = {
    en: { csv: 'Paste a CSV', some: /^1 of 4 lines were left out, because they have no two numbers; the first is line 3: “2,abc”\.$/, none: /^No two lines with two numbers each were found: line 1 is “1,a”\.$/, million: /^400 points, evenly spread over 1,000,000 lines, are shown\.$/, foreign: /^pytorch_model\.bin is not a model that this page can read/, broken: /safetensors/, pairs: /^mine\.tsv:2: / },
    zh: { csv: '粘贴 CSV', some: /^4 行中略去了 1 行/, none: /^没有找到两行各含两个数的数据：第 1 行是/, million: /^显示 400 个点，均匀取自 1,000,000 行。$/, foreign: /^pytorch_model\.bin 不是本页能读的模型/, broken: /[一-龥]/, pairs: /^mine\.tsv:2：/ },
  }[lang];
  test(`${name}: a table with text in its numbers, and one with a million rows`, { timeout: 120_000 }, async () => {
    const page = await here.open(here.report, { lang });
    await page.evaluate((lang) => (document.documentElement.dataset.lang = lang), lang);
    const frame = await bench(page, 'regression');
    await last(frame, '/regress');
    const paste = async (text) => {
      if (!(await frame.locator('.pastebox').count())) await frame.click(`text=${words.csv}`);
      await frame.fill('.pastebox textarea', text);
      await frame.click('.pastebox button');
      return frame.textContent('.paste [role=alert]');
    };
    assert.match(await paste('x,y\n1,1\n2,abc\n3,2\n4,5\n'), words.some);
    assert.match(await paste('1,a\n2,b\n'), words.none);
    await drop(frame, [{ name: 'large.csv', text: '1.5,2.5\n3.25,1\n', repeat: 500_000 }]);
    await frame.waitForFunction(() => /1,000,000/.test(document.querySelector('.paste [role=alert]').textContent));
    assert.match(await frame.textContent('.paste [role=alert]'), words.million);
    const { body } = await last(frame, '/regress', (b) => b.x.length === 400);
    assert.equal(JSON.parse(body).x.length, 400);
    await lives(frame);
    await page.context().close();
  });

  test(`${name}: files that are not for this page`, { timeout: 120_000 }, async () => {
    const page = await here.open(here.report, { lang });
    await page.evaluate((lang) => (document.documentElement.dataset.lang = lang), lang);
    const frame = await bench(page, 'training');
    await frame.waitForSelector('section.controls');
    const said = async (files) => {
      await frame.evaluate(() => document.querySelector('.brought button')?.click());
      await drop(frame, files);
      await frame.waitForSelector('.brought[role=alert]');
      return frame.textContent('.brought b');
    };
    assert.match(await said([{ name: 'pytorch_model.bin', text: '\x80\x02garbage' }]), words.foreign);
    // A folder that looks right, with the weights of another program.
    assert.match(await said([{ name: 'config.yaml', text: 'model_type: llama\n' }, { name: 'model.safetensors', text: 'not weights at all' }]), words.broken);
    assert.match(await said([{ name: 'mine.tsv', text: 'go .\tva !\nno tab here\n' }]), words.pairs);
    await lives(frame);
    await page.context().close();
  });

  test(`${name}: a browser without SIMD says so in one sentence, and the recorded figures remain`, { timeout: 60_000 }, async () => {
    const page = await here.open(here.report, { lang, before: () => (WebAssembly.validate = () => false) });
    await page.evaluate((lang) => (document.documentElement.dataset.lang = lang), lang);
    const frame = await bench(page, 'cues');
    await frame.waitForSelector('.state.failed');
    assert.equal(await frame.textContent('.state.failed'), { en: 'This browser cannot run the engine, because it lacks SIMD or exceptions of WebAssembly; a current browser can.', zh: '此浏览器无法运行引擎，因为它缺少 WebAssembly 的 SIMD 或异常；较新的浏览器可以。' }[lang]);
    assert.equal(await frame.evaluate(() => window.workers), 0);
    await page.click('dialog.explorer > button');
    assert.ok((await page.locator('figure svg').count()) > 3);
    await page.context().close();
  });

  test(`${name}: memory that is exhausted is an answer, and the engine comes back`, { timeout: 120_000 }, async () => {
    // The engine's memory grows by request; here the browser gives no more after a while.
    const page = await here.open(here.report, {
      lang,
      before: () => {
        const Plain = window.Blob;
        const script = 'WebAssembly.Memory.prototype.grow = function () { throw new RangeError("no memory"); };';
        window.Blob = function (parts, options) {
          return new Plain(options?.type === 'text/javascript' ? [script, ...parts] : parts, options);
        };
        window.Blob.prototype = Plain.prototype;
      },
    });
    await page.evaluate((lang) => (document.documentElement.dataset.lang = lang), lang);
    const frame = await bench(page, 'heads');
    await last(frame, '/models');
    await frame.locator('input[type=text]').first().fill('the red cat sleeps in the big house . '.repeat(100));
    await frame.waitForFunction(() => window.asked.some((a) => a.status === 503));
    const line = await frame.textContent('.state.failed');
    assert.match(line, { en: /^there is not enough memory for this request$/, zh: /^[一-龥，。]+$/ }[lang]);
    await lives(frame);
    await page.context().close();
  });
}

test('nothing complained', () => assert.deepEqual(here.complaints, []));
