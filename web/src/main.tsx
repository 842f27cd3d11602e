// The page: benches along the top, one of them below.
import { render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import './style.css';
import { benches } from './benches';
import { leftOut, opening, recorded } from './api';
import { Brought, BringButton } from './bring';
import { hasEngine } from './engine';
import { watchModels } from './models';
import { bench, hover, isDark, lang, ramp, start, theme } from './store';
import { t } from './words';

function Licences() {
  const dialog = useRef<HTMLDialogElement>(null);
  const text = (document.getElementById('licences') as HTMLTemplateElement | null)?.content.textContent ?? '';
  return (
    <>
      <button type="button" class="link" onClick={() => dialog.current!.showModal()}>
        {t('licences')}
      </button>
      <dialog ref={dialog} aria-label={t('licences')}>
        <form method="dialog">
          <button type="submit" class="plain">
            {t('close')}
          </button>
        </form>
        <pre tabIndex={0}>{text.trim()}</pre>
      </dialog>
    </>
  );
}

// The start page of a site, where this is a part of one.
const home = document.querySelector<HTMLLinkElement>('link[rel=start]')?.getAttribute('href');

function Page() {
  const offered = recorded && !hasEngine ? benches.filter((one) => recorded!.some((r) => one.asks.includes(r.path))) : benches;
  const here = offered.find((one) => one.name === bench.value) ?? offered.find((one) => one.name === 'translate') ?? offered[0];
  document.title = `${t(`bench_${here.name}`)} · qkv`;
  // On a narrow screen the row of benches scrolls: the one that is open is brought into view.
  useEffect(() => document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }), [here.name]);
  const go = (name: string) => {
    hover.value = null;
    bench.value = name;
  };
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById('main')?.focus())}>
        {t('skip')}
      </a>
      <header class="bar">
        {home ? (
          <a class="brand" href={home} title={t('home')}>
            q<i>k</i>v
          </a>
        ) : (
          <span class="brand">
            q<i>k</i>v
          </span>
        )}
        <nav aria-label={t('benches')}>
          {offered.map(({ name }) => (
            <button type="button" aria-current={name === here.name ? 'page' : undefined} onClick={() => go(name)}>
              {t(`bench_${name}`)}
            </button>
          ))}
        </nav>
        <button type="button" class="tool" title={t('colours')} aria-label={t('colours')} onClick={() => (ramp.value = ramp.value === 'viridis' ? 'reds' : 'viridis')}>
          <i class={`swatch ${ramp.value}`} />
        </button>
        <button type="button" class="tool" lang={lang.value === 'zh' ? 'en' : 'zh-CN'} onClick={() => (lang.value = lang.value === 'zh' ? 'en' : 'zh')}>
          {lang.value === 'zh' ? 'English' : '中文'}
        </button>
        <button type="button" class="tool" title={t('theme')} aria-label={t('theme')} onClick={() => (theme.value = isDark() ? 'light' : 'dark')}>
          ◐
        </button>
      </header>
      {hasEngine && <Brought />}
      <here.Bench key={here.name} />
      <footer>
        {recorded && <p class="recorded">{[t(hasEngine ? 'recordedAndEngine' : 'recordedFile'), ...(hasEngine ? [] : leftOut).map((one) => t('notInFile', { what: one }))].join(' ')}</p>}
        <span>{t(hasEngine ? 'footerEngine' : 'footer')}</span> {hasEngine && <BringButton />} <Licences />
      </footer>
    </>
  );
}

if (opening && location.hash.length < 2) history.replaceState(null, '', opening);
start();
render(<Page />, document.getElementById('page')!);
watchModels();
