import { open, done } from './mock.mjs';
const out = '/tmp/h21b/t/';
for (const [name, opts] of [['start-en', {}], ['start-zh-dark-phone', { locale: 'zh-CN', colorScheme: 'dark', viewport: { width: 390, height: 844 } }]]) {
  const p = await open('file:///tmp/h21b/site/index.html', opts);
  await p.waitForTimeout(300);
  await p.screenshot({ path: out + name + '.png' });
}
const p = await open('file:///tmp/h21b/site/explore.html#training?lang=zh', { locale: 'zh-CN', colorScheme: 'dark', viewport: { width: 390, height: 844 } });
await p.waitForTimeout(1500);
await p.screenshot({ path: out + 'training-zh-phone.png', fullPage: true });
await p.goto('file:///tmp/h21b/site/tour.html');
await p.waitForTimeout(500);
await p.screenshot({ path: out + 'tour-phone.png' });
await p.click('[data-bench="#scores"]');
await p.waitForTimeout(1500);
await p.screenshot({ path: out + 'tour-phone-scores.png' });
await done();
