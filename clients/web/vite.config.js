import { defineConfig } from "vite";

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2022",
    // Data in URLs would need a wider Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  // `npm run dev` serves the page while it is written, with the calls of a broker.
  server: { proxy: { "/muster.v1": { target: process.env.MUSTER_WEB_BROKER ?? "http://127.0.0.1:7071", changeOrigin: true } } },
});
