// A figure: its title, what it shows, and how to take it along (SVG, PNG, CSV, JSON, the command that makes the same).
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { csvOf, pngOf, save, svgOf, Table } from '../export';
import { t } from '../words';

export function Figure(props: {
  name: string;
  title: string;
  children: ComponentChildren;
  note?: ComponentChildren;
  svg?: () => string; // where the picture is not one SVG element already
  noPicture?: boolean;
  table?: () => Table;
  json?: () => unknown;
  command?: string;
  wide?: boolean;
  tools?: ComponentChildren;
}) {
  const box = useRef<HTMLElement>(null);
  const [open, setOpen] = useState(false);
  const [copied, setCopied] = useState(false);
  const picture = () => {
    if (props.svg) return props.svg();
    const element = box.current!.querySelector<SVGSVGElement>('.drawing svg');
    return element ? svgOf(element) : null;
  };
  const saveAs = async (kind: string) => {
    const file = `qkv-${props.name}.${kind}`;
    if (kind === 'csv') return save(file, csvOf(props.table!()), 'text/csv');
    if (kind === 'json') return save(file, JSON.stringify(props.json!(), null, 1), 'application/json');
    const svg = picture();
    if (!svg) return;
    save(file, kind === 'svg' ? svg : await pngOf(svg), 'image/svg+xml');
  };
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(props.command!);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    } catch {
      setCopied(false); // the text is there to be selected by hand
    }
  };
  const kinds = [...(props.noPicture ? [] : ['svg', 'png']), ...(props.table ? ['csv'] : []), ...(props.json ? ['json'] : [])];
  return (
    <section class={props.wide ? 'card wide' : 'card'} ref={box} aria-label={props.title} data-figure={props.name}>
      <header>
        <h2>{props.title}</h2>
        {props.tools}
        <div class="export" role="group" aria-label={t('exportOf', { title: props.title })}>
          {kinds.map((kind) => (
            <button type="button" onClick={() => void saveAs(kind)} title={t('saveAs', { kind: kind.toUpperCase() })}>
              {kind.toUpperCase()}
            </button>
          ))}
          {props.command && (
            <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
              {t('command')}
            </button>
          )}
        </div>
      </header>
      {open && props.command && (
        <div class="commandline">
          <code>{props.command}</code>
          <button type="button" class="plain" onClick={() => void copy()}>
            {copied ? t('copied') : t('copy')}
          </button>
        </div>
      )}
      <div class="drawing">{props.children}</div>
      {props.note && <p class="note">{props.note}</p>}
    </section>
  );
}
