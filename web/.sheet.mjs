import { chromium } from 'playwright-core';
import { readFileSync } from 'node:fs';
const [out, w, ...files] = process.argv.slice(2);
const b = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
const p = await b.newPage({ viewport: { width: files.length * (Number(w) + 8), height: 600 } });
await p.setContent(`<body style="margin:0;display:flex;gap:8px;align-items:start;background:#888">${files.map((f) => `<img style="width:${w}px" src="data:image/png;base64,${readFileSync(f).toString('base64')}">`).join('')}`);
await p.screenshot({ path: out, fullPage: true });
await b.close();
