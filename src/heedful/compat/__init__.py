"""The interfaces of other systems on Heedful: change an import, keep the calls. One thin module each."""
