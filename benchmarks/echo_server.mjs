/** The floor of a server on the TypeScript SDK: `node echo_server.mjs CLIENTS`. One tool, low level, nothing else. */
import { createRequire } from 'node:module';

const wanted = createRequire(`${process.argv[2]}/`);
const { Server } = wanted('@modelcontextprotocol/server');
const { serveStdio } = wanted('@modelcontextprotocol/server/stdio');

const inputSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
const tools = [{ name: 'echo', description: 'Says it again.', inputSchema }];

serveStdio(() => {
  const server = new Server({ name: 'echo', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => ({ tools }));
  server.setRequestHandler('tools/call', ({ params }) => {
    const { text } = params.arguments;
    return { content: [{ type: 'text', text }], structuredContent: { text } };
  });
  return server;
});
