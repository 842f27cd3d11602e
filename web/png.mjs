// A PNG made smaller: its colours become a palette, in steps coarse enough for 256 entries. For pictures in documents.
import { deflateSync, inflateSync } from 'node:zlib';

const table = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; ++k) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n >>> 0;
});
const crc = (bytes) => (bytes.reduce((sum, byte) => table[(sum ^ byte) & 255] ^ (sum >>> 8), 0xffffffff) ^ 0xffffffff) >>> 0;
function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(crc(body), body.length + 4);
  return out;
}

/** Undoes the filters of rows of RGB or RGBA pixels. */
function plain(raw, width, height, channels) {
  const row = width * channels;
  const out = Buffer.alloc(row * height);
  const paeth = (a, b, c) => {
    const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
  };
  for (let y = 0; y < height; ++y) {
    const kind = raw[y * (row + 1)];
    for (let x = 0; x < row; ++x) {
      const a = x >= channels ? out[y * row + x - channels] : 0;
      const b = y ? out[(y - 1) * row + x] : 0;
      const c = x >= channels && y ? out[(y - 1) * row + x - channels] : 0;
      const add = [0, a, b, (a + b) >> 1, paeth(a, b, c)][kind];
      out[y * row + x] = (raw[y * (row + 1) + 1 + x] + add) & 255;
    }
  }
  return out;
}

export function smaller(png) {
  const width = png.readUInt32BE(16);
  const height = png.readUInt32BE(20);
  const channels = { 2: 3, 6: 4 }[png[25]];
  if (!channels || png[24] !== 8) return png;
  const data = [];
  for (let at = 8; at < png.length; at += png.readUInt32BE(at) + 12) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') data.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  const pixels = plain(inflateSync(Buffer.concat(data)), width, height, channels);
  const rows = (row, from) => Buffer.concat(Array.from({ length: height }, (_, y) => Buffer.concat([Buffer.from([0]), from.subarray(y * row, (y + 1) * row)])));
  const colours = new Map();
  const indices = Buffer.alloc(width * height);
  // Colours that differ by less than one eye can see share an entry: coarser steps until 256 entries are enough.
  for (let step = 1; step <= 16; step *= 2) {
    colours.clear();
    for (let i = 0; i < width * height && colours.size <= 256; ++i) {
      const [r, g, b] = [0, 1, 2].map((c) => Math.min(255, Math.round(pixels[i * channels + c] / step) * step));
      const key = (r << 16) | (g << 8) | b;
      if (!colours.has(key)) colours.set(key, colours.size);
      indices[i] = colours.get(key);
    }
    if (colours.size <= 256) break;
  }
  if (colours.size > 256) return png;
  const palette = Buffer.from([...colours.keys()].flatMap((key) => [key >> 16, (key >> 8) & 255, key & 255]));
  const header = Buffer.from(png.subarray(16, 29));
  header[8 + 1] = 3; // a palette
  return Buffer.concat([png.subarray(0, 8), chunk('IHDR', header), chunk('PLTE', palette), chunk('IDAT', deflateSync(rows(width, indices), { level: 9 })), chunk('IEND', Buffer.alloc(0))]);
}
