"""What stands around the SDKs in these tests: real servers on loopback, and a record of what reached them.

    SDK -> gatehook serve (one process per scenario) -> Upstream -> llama.cpp, or replies in Ollama's form,
                     |                                              or recorded streams of all servers
                     +-> Webhook (answers the verdict that its path names)
    gatehook run, gatehook chat in a terminal -> Upstream -> llama.cpp

Every test speaks to a model name of its own, so one set of servers serves all tests at once, and what a test counts
is what it caused.
"""
