// The page with Grafana's packages in a browser without a screen.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import puppeteer from 'puppeteer-core';

const here = fileURLToPath(new URL('.', import.meta.url));
const modules = process.env.NODE_MODULES ?? here + 'node_modules';

// oneOf resolves a package from here, whoever imports it: two copies have two themes.
const oneOf = (filter) => ({
  name: 'one',
  setup: ({ onResolve, resolve }) =>
    onResolve({ filter }, ({ path, kind, pluginData }) => (pluginData === here ? undefined : resolve(path, { kind, resolveDir: here, pluginData: here }))),
});

// open starts the browser of the variable CHROMIUM.
export async function open() {
  const { outputFiles } = await build({
    entryPoints: [here + 'app.jsx'], bundle: true, write: false, outdir: '/', format: 'iife', jsx: 'automatic',
    nodePaths: [modules], plugins: [oneOf(/^@grafana\/data($|\/)/)], define: { 'process.env.NODE_ENV': '"production"', global: 'window' },
    loader: { '.ttf': 'dataurl', '.woff2': 'dataurl', '.svg': 'dataurl', '.json': 'json' }, logLevel: 'error',
  });
  const script = outputFiles.find((f) => f.path.endsWith('.js')).text;
  const style = ['uplot/dist/uPlot.min.css', '@grafana/react-data-grid/lib/styles.css'].map((f) => readFileSync(`${modules}/${f}`, 'utf8')).join('');
  const page = `<!doctype html><meta charset="utf-8"><style>${style}</style><body><div id="root"></div><script src="/app.js"></script>`;
  const server = createServer((req, res) => {
    res.setHeader('content-type', req.url === '/app.js' ? 'text/javascript' : 'text/html');
    res.end(req.url === '/app.js' ? script : req.url === '/' ? page : '');
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
  return {
    // draw returns what window.draw of app.jsx does, and writes a picture.
    async draw(prometheus, dashboard, { given = {}, minutes = 15, mode = 'dark', width = 1600, height = Infinity, scale = 1, png, unfold, end } = {}) {
      const tab = await browser.newPage();
      tab.on('pageerror', (e) => console.error(dashboard.uid, e.message));
      await tab.setViewport({ width, height: 1000 });
      if (end) {
        await tab.evaluateOnNewDocument((now) => {
          window.Date = class extends Date {
            constructor(...of) {
              super(...(of.length ? of : [now]));
            }
            static now() {
              return now;
            }
          };
        }, end * 1000);
      }
      await tab.goto(`http://127.0.0.1:${server.address().port}/`);
      const drawn = await tab.evaluate((...a) => window.draw(...a), prometheus, dashboard, given, minutes, mode, unfold, end);
      if (png) {
        await tab.setViewport({ width, height: Math.min(drawn.height + 20, height), deviceScaleFactor: scale });
        await new Promise((settled) => setTimeout(settled, 1500));
        await tab.screenshot({ path: png });
      }
      await tab.close();
      return drawn;
    },
    async close() {
      await browser.close();
      server.close();
    },
  };
}
