// node render.mjs PROMETHEUS OUT [MINUTES] [UID [VARIABLE=VALUE]...]
//
// Draws the dashboards that Prometheus has the data for, as PNG files.
// CHROMIUM is the path of the browser; MODE=light, WIDTH, SCALE and FORMAT=jpeg
// change the pictures, HEIGHT cuts them off, UNFOLD is a regular expression of folded
// rows to open, END the time in seconds that is now.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { open } from './browser.mjs';

const [prometheus, out, minutes = '15', only, ...set] = process.argv.slice(2);
const given = Object.fromEntries(set.map((s) => [s.slice(0, s.indexOf('=')), s.slice(s.indexOf('=') + 1)]));
const { MODE: mode, WIDTH: width = 1600, HEIGHT: height = 1e5, SCALE: scale = 1, FORMAT: format = 'png', UNFOLD: unfold, END: end } = process.env;

const boards = new URL('../../dashboards/', import.meta.url);
const browser = await open();
mkdirSync(out, { recursive: true });
for (const file of readdirSync(boards).filter((f) => f.endsWith('.json') && (!only || f === only + '.json'))) {
  const dashboard = JSON.parse(readFileSync(new URL(file, boards)));
  const drawn = await browser.draw(prometheus, dashboard, {
    given, minutes: Number(minutes), mode, width: Number(width), height: Number(height), scale: Number(scale), unfold, end: end && Number(end), png: `${out}/${dashboard.uid}.${format}`,
  });
  writeFileSync(`${out}/${dashboard.uid}.report.json`, JSON.stringify(drawn, null, 1));
}
await browser.close();
