"""One file per kind of channel: how a message looks there, how it is sent, and what the answer means."""
