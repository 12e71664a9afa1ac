// Run once, when the database is created: a user who may read and write one database, and nothing else.
const password = process.env.HEEDFUL_MONGODB_PASSWORD;
if (!password || !process.env.MONGO_INITDB_ROOT_PASSWORD || password === process.env.MONGO_INITDB_ROOT_PASSWORD) {
  throw new Error("Set MONGODB_PASSWORD and another HEEDFUL_MONGODB_PASSWORD in .env");
}
db.getSiblingDB("heedful").createUser({
  user: "heedful",
  pwd: password,
  roles: [{ role: "readWrite", db: "heedful" }],
});
