// node render.mjs PROMETHEUS OUT [MINUTES] [UID [VARIABLE=VALUE]...]
//
// Draws the dashboards that Prometheus has the data for, as PNG files.
// CHROMIUM is the path of the browser; HEIGHT cuts the pictures off, SCALE
// makes them smaller.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import puppeteer from 'puppeteer-core';

const here = fileURLToPath(new URL('.', import.meta.url));
const modules = process.env.NODE_MODULES ?? here + 'node_modules';
const [prometheus, out, minutes = '15', only, ...set] = process.argv.slice(2);
const given = Object.fromEntries(set.map((s) => [s.slice(0, s.indexOf('=')), s.slice(s.indexOf('=') + 1)]));

const { outputFiles } = await build({
  entryPoints: [here + 'app.jsx'], bundle: true, write: false, outdir: '/', format: 'iife', jsx: 'automatic',
  nodePaths: [modules], define: { 'process.env.NODE_ENV': '"production"', global: 'window' },
  loader: { '.ttf': 'dataurl', '.woff2': 'dataurl', '.svg': 'dataurl', '.json': 'json' }, logLevel: 'error',
});
const script = outputFiles.find((f) => f.path.endsWith('.js')).text;
const style = ['uplot/dist/uPlot.min.css', '@grafana/react-data-grid/lib/styles.css'].map((f) => readFileSync(`${modules}/${f}`, 'utf8')).join('');
const page = `<!doctype html><meta charset="utf-8"><style>${style}</style><body style="background:#111217"><div id="root"></div><script src="/app.js"></script>`;
const server = createServer((req, res) => {
  res.setHeader('content-type', req.url === '/app.js' ? 'text/javascript' : 'text/html');
  res.end(req.url === '/app.js' ? script : req.url === '/' ? page : '');
});
await new Promise((ready) => server.listen(0, '127.0.0.1', ready));

const boards = new URL('../../dashboards/', import.meta.url);
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
mkdirSync(out, { recursive: true });
for (const file of readdirSync(boards).filter((f) => f.endsWith('.json') && (!only || f === only + '.json'))) {
  const tab = await browser.newPage();
  tab.on('pageerror', (e) => console.error(file, e.message));
  await tab.setViewport({ width: 1600, height: 1000 });
  await tab.goto(`http://127.0.0.1:${server.address().port}/`);
  const dashboard = JSON.parse(readFileSync(new URL(file, boards)));
  const drawn = await tab.evaluate((...a) => window.draw(...a), prometheus, dashboard, given, Number(minutes));
  const height = Math.min(drawn.height + 20, Number(process.env.HEIGHT ?? 1e5));
  await tab.setViewport({ width: 1600, height, deviceScaleFactor: Number(process.env.SCALE ?? 1) });
  await new Promise((settled) => setTimeout(settled, 1500));
  await tab.screenshot({ path: `${out}/${dashboard.uid}.png` });
  writeFileSync(`${out}/${dashboard.uid}.report.json`, JSON.stringify(drawn, null, 1));
  await tab.close();
}
await browser.close();
server.close();
