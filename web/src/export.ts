// Figures as files: SVG with its styles written out, PNG at twice the size, tables as CSV or JSON.
export interface Table {
  header: string[];
  rows: (string | number)[][];
}

const kept = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linejoin', 'stroke-linecap', 'stroke-opacity',
  'fill-opacity', 'opacity', 'font-size', 'font-weight', 'font-family', 'text-anchor', 'dominant-baseline', 'paint-order',
  'visibility', 'display'];

/** An SVG on the page as a document of its own. */
export function svgOf(element: SVGSVGElement): string {
  const copy = element.cloneNode(true) as SVGSVGElement;
  const from = [element, ...element.querySelectorAll('*')];
  const to = [copy, ...copy.querySelectorAll('*')];
  from.forEach((one, index) => {
    const style = getComputedStyle(one);
    for (const name of kept) {
      const value = style.getPropertyValue(name);
      if (value) to[index].setAttribute(name, value);
    }
    for (const name of ['class', 'tabindex', 'role', 'style']) to[index].removeAttribute(name);
  });
  const { width, height } = element.getBoundingClientRect();
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('width', String(Math.round(width)));
  copy.setAttribute('height', String(Math.round(height)));
  if (!copy.hasAttribute('viewBox')) copy.setAttribute('viewBox', `0 0 ${width} ${height}`);
  const box = copy.getAttribute('viewBox')!.split(' ');
  const ground = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  ground.setAttribute('x', box[0]);
  ground.setAttribute('y', box[1]);
  ground.setAttribute('width', box[2]);
  ground.setAttribute('height', box[3]);
  ground.setAttribute('fill', getComputedStyle(document.documentElement).getPropertyValue('--panel').trim());
  copy.insertBefore(ground, copy.firstChild);
  return new XMLSerializer().serializeToString(copy);
}

export async function pngOf(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([svg], { type: 'image/svg+xml' }));
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = image.width * 2;
  canvas.height = image.height * 2;
  canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done) => canvas.toBlob((blob) => done(blob!), 'image/png'));
}

const cell = (value: string | number) => {
  const text = String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
export const csvOf = (table: Table) =>
  [table.header, ...table.rows].map((row) => row.map(cell).join(',')).join('\n') + '\n';

export function save(name: string, content: string | Blob, type = 'text/plain') {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(typeof content === 'string' ? new Blob([content], { type }) : content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export const escapeXml = (text: string) => text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]!);

/** A map with labels, as rows of a table. */
export const mapTable = (values: number[][], rows: string[], columns: string[]): Table => ({
  header: ['', ...columns],
  rows: values.map((row, i) => [rows[i] ?? i, ...row]),
});
