import { open, done } from './mock.mjs';
const out = '/tmp/h21b/t/';
let p = await open('file:///tmp/h21b/rep/index.html');
await p.screenshot({ path: out + 'report.png' });
await p.click('[data-bench="#cues"]');
await p.waitForTimeout(2500);
await p.screenshot({ path: out + 'report-cues.png' });
const f = p.frames()[1];
for (const [n, h] of [['training', '#training?lang=en'], ['width', '#training?kind=nadaraya-watson&lang=en'], ['vision', '#vision?lang=zh&theme=dark'], ['language', '#language?lang=en']]) {
  await f.evaluate((h) => (history.replaceState(null, '', h), dispatchEvent(new HashChangeEvent('hashchange'))), h);
  await p.waitForTimeout(2500);
  await p.screenshot({ path: out + n + '.png' });
}
await done();
