"""A subscriber of its own process: `subscriber.py SERVER REQUEST NAME...` prints how many updates came in each second, and what was lost."""

import sys
import time

import pva

server, request, *names = sys.argv[1:]
count = 0


def update(_):
    global count
    count += 1


with pva.client(server) as context:
    subscriptions = [context.monitor(name, update, request=request, notify_disconnect=False) for name in names]
    while True:
        began, before = time.monotonic(), count
        time.sleep(1)
        print(round((count - before) / (time.monotonic() - began), 1), flush=True)
