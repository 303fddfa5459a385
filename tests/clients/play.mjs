/**
 * Plays a workflow to its end by the calls that the server's own answers name, and prints what came of it. Before that,
 * it asks for a workflow of a misspelled id, and reads the refusal.
 */
export async function play(client, workflowId, observed) {
  const { tools } = await client.listTools();
  const { isError, structuredContent } = await client.callTool({
    name: 'inspect_workflow',
    arguments: { workflowId: `${workflowId}x` },
  });
  const refused = { isError, ...structuredContent };
  const answers = [];
  let call = { name: 'start_workflow', arguments: { workflowId } };
  while (call && answers.length < 10) {
    const answer = await client.callTool(call);
    answers.push(answer.structuredContent);
    const next = answer.isError ? null : answer.structuredContent.nextCall;
    call = next && { name: next.tool, arguments: { ...next.arguments, output: { notesMarkdown: 'Done.' } } };
  }
  await client.close();
  console.log(JSON.stringify({ ...observed, tools: tools.map((tool) => tool.name), refused, answers }));
}
