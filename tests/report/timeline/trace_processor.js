// Perfetto's trace processor, compiled to WebAssembly by its authors, behind stdin and stdout.
//
//   node trace_processor.js FOLDER
//
// FOLDER has engine_bundle.js and trace_processor*.wasm, which is made for a worker of a browser. A frame is four
// bytes of length, little-endian, and a TraceProcessorRpcStream; an empty frame follows the answers to each.
"use strict";
const fs = require("fs");
const vm = require("vm");
const { Buffer } = require("buffer");
const folder = process.argv[2];
const node = process;

class XMLHttpRequest {
  open(method, name) {
    this.name = name;
  }
  send() {
    this.response = fs.readFileSync(folder + "/" + this.name).buffer;
  }
}

function write(bytes) {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(bytes.length);
  for (const part of [size, bytes])
    for (let at = 0; at < part.length; ) at += fs.writeSync(1, part, at);
}

function read(count) {
  const found = Buffer.alloc(count);
  for (let at = 0; at < count; ) {
    const got = fs.readSync(0, found, at, count - at);
    if (!got) node.exit(0);
    at += got;
  }
  return found;
}

Object.assign(globalThis, {
  self: globalThis,
  WorkerGlobalScope: class {},
  location: { href: "" },
  importScripts() {},
  XMLHttpRequest,
});
delete globalThis.process; // or it takes itself for a program of node's
console.log = console.error = console.warn = () => {};
vm.runInThisContext(fs.readFileSync(folder + "/engine_bundle.js", "utf8"));
globalThis.process = node;
const port = { postMessage: write };
globalThis.onmessage({ data: port });
setTimeout(() => {
  for (;;) {
    port.onmessage({ data: new Uint8Array(read(read(4).readUInt32LE())) });
    write(Buffer.alloc(0));
  }
}, 1);
