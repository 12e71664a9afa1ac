/** What the compiler accepts and what it refuses; it is compiled, and never run. */

import { connect, type Entry, HindsightClient, type Hit, type Page } from "heedful";

export async function accepted(): Promise<void> {
  const client = connect("http://127.0.0.1:8000", { apiKey: "hf_x", project: "shop", timeout: 5000 });
  const recall = await client.recall({ query: "x", top_k: 3, boost_by_usefulness: true }, { onToken: console.log });
  const hits: Hit[] = recall.hits;
  const answer: string | null = recall.answer;
  const entries: Page<Entry> = await client.sessions.entries("a", { limit: 5 });
  const rated: boolean = await client.sessions.addFeedback("a", "b", { feedback_score: 5 });
  for await (const session of client.sessions.iterate()) session.session_id.toUpperCase();
  await client.feedback.update("a", { feedback: null }, { ifMatch: "x", idempotencyKey: "y" });
  await client.datasets({ signal: AbortSignal.timeout(5) });
  void [hits, answer, entries, rated];
}

export async function refused(): Promise<void> {
  const client = connect("http://127.0.0.1:8000");
  // @ts-expect-error a field that is not there
  await client.recall({ query: "x", topK: 3 });
  // @ts-expect-error a field that is missing
  await client.recall({ top_k: 3 });
  // @ts-expect-error a field of another type
  await client.sessions.addFeedback("a", "b", { feedback_score: "5" });
  // @ts-expect-error a value that is not one of those
  await client.recall({ query: "x", mode: "telepathy" });
  // @ts-expect-error a type of signal that is not one of the four
  await client.signal({ signals: [{ fact_id: "a", signal_type: "adored", query: "x" }] });
  // @ts-expect-error a place in the path that is missing
  await client.sessions.addFeedback("a", { feedback_score: 5 });
  // @ts-expect-error a call that takes no fields
  await client.datasets({ limit: 3 });
  // @ts-expect-error an option of another call
  await client.improve({}, { onToken: console.log });
  // @ts-expect-error a result's field that is not there
  (await client.recall({ query: "x" })).facts;
  // @ts-expect-error a method that is not there
  await client.sessions.rename("a", "b");
  // @ts-expect-error a bank has to be named
  new HindsightClient({ baseUrl: "http://127.0.0.1:8000" });
  const hindsight = new HindsightClient({ bankId: "a" });
  // @ts-expect-error a signal without its query
  await hindsight.signal({ signals: [{ factId: "a", signalType: "used" }] });
}
