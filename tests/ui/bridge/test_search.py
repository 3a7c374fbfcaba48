import asyncio

from desktop_agent.types.search import ConversationHits, SearchQuery, SearchResults
from tests.fakes.qt_loop import Bridge, Heard, until
from ui.bridge.search import FIRST_SECONDS, SearchAsYouType


class SlowSearch:
    """A search that answers when the test says so: the real one is quicker than a test can type."""

    def __init__(self):
        self.asked = []

    async def find(self, query, *, seconds):
        self.seconds = seconds
        answer = asyncio.get_running_loop().create_future()
        self.asked.append((query, answer))
        return await answer


def test_only_the_newest_query_is_answered(in_loop, tmp_path):
    async def work():
        bridge = await Bridge.open(tmp_path)
        slow = SlowSearch()
        searching = SearchAsYouType(slow, bridge.tasks)
        answers = Heard(searching.found)
        first, second = SearchQuery("p"), SearchQuery("pl")
        searching.search(first)
        await until(lambda: len(slow.asked) == 1)
        searching.search(second)
        await until(lambda: len(slow.asked) == 2)
        results = SearchResults((ConversationHits("1", "Plums"),))
        slow.asked[0][1].set_result(results)
        slow.asked[1][1].set_result(None)  # somebody else searched: asked again
        await until(lambda: len(slow.asked) == 3)
        slow.asked[2][1].set_result(results)
        await answers.next()
        searching.search(first)
        await until(lambda: len(slow.asked) == 4)
        searching.stop()
        slow.asked[3][1].set_result(results)
        await bridge.idle()
        assert answers == [(second, results)]
        await bridge.close()

    in_loop(work())


def test_what_is_found_at_first_is_shown_before_the_rest_is_looked_through(in_loop, tmp_path):
    async def work():
        bridge = await Bridge.open(tmp_path)
        slow = SlowSearch()
        searching = SearchAsYouType(slow, bridge.tasks)
        answers = Heard(searching.found)
        query = SearchQuery("p")
        searching.search(query)
        await until(lambda: len(slow.asked) == 1)
        assert slow.seconds == FIRST_SECONDS
        first = SearchResults((ConversationHits("1", "Plums"),), is_cut=True)
        slow.asked[0][1].set_result(first)
        await until(lambda: len(slow.asked) == 2)
        assert slow.seconds is None
        whole = SearchResults((ConversationHits("1", "Plums"), ConversationHits("2", "Pears")))
        slow.asked[1][1].set_result(whole)
        await until(lambda: len(answers) == 2)
        assert answers == [(query, first), (query, whole)]
        await bridge.close()

    in_loop(work())


def test_while_the_index_grows_the_query_is_asked_again(in_loop, tmp_path):
    async def work():
        bridge = await Bridge.open(tmp_path)
        slow = SlowSearch()
        searching = SearchAsYouType(slow, bridge.tasks)
        searching._timer.setInterval(0)
        answers = Heard(searching.found)
        searching.search(SearchQuery("p"))
        await until(lambda: len(slow.asked) == 1)
        slow.asked[0][1].set_result(SearchResults(is_complete=False))
        await until(lambda: len(slow.asked) == 2)
        slow.asked[1][1].set_result(SearchResults())
        await until(lambda: len(answers) == 2)
        assert not searching._timer.isActive()
        await bridge.close()

    in_loop(work())
