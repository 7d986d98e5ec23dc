import FCMModel
import NIOCore
import Testing

struct TopicRequestTests {
    private func topic(_ name: String) throws -> TopicName { try #require(TopicName(name)) }

    @Test("A batch names the topic with its prefix and the devices in order")
    func batch() throws {
        let add = InstanceIDRequest.batch(.subscribe, ["t1", "a\"b", "t1"], try self.topic("news"))
        #expect(add.method == .post)
        #expect(add.path == "/iid/v1:batchAdd")
        #expect(String(buffer: add.body) == #"{"to":"/topics/news","registration_tokens":["t1","a\"b","t1"]}"#)
        let remove = InstanceIDRequest.batch(.unsubscribe, ["t1"], try self.topic("a%b"))
        #expect(remove.path == "/iid/v1:batchRemove")
        #expect(String(buffer: remove.body) == #"{"to":"/topics/a%b","registration_tokens":["t1"]}"#)
    }

    @Test("A look-up escapes the token")
    func info() {
        let request = InstanceIDRequest.info("a:b/../c?d")
        #expect(request.method == .get)
        #expect(request.path == "/iid/info/a%3Ab%2F..%2Fc%3Fd?details=true")
        #expect(request.body.readableBytes == 0)
    }

    @Test("v1 subscribes by POST with the topic in the query, and unsubscribes by DELETE with the topic in the path")
    func v1() throws {
        let requests = V1TopicRequest(project: "example.com:demo")
        let parent = "/v1/projects/example.com%3Ademo/registrations/a%3Ab%2Fc/topicSubscriptions"
        let create = requests.change(.subscribe, "a:b/c", try self.topic("100%~x"))
        #expect(create.method == .post)
        #expect(create.path == parent + "?topic_name=100%25~x")
        #expect(String(buffer: create.body) == "{}")
        let delete = requests.change(.unsubscribe, "a:b/c", try self.topic("100%~x"))
        #expect(delete.method == .delete)
        #expect(delete.path == parent + "/100%25~x?allow_missing=true")
        #expect(delete.body.readableBytes == 0)
        #expect(requests.list("a:b/c").path == parent + "?page_size=300")
        #expect(requests.list("a:b/c", page: "x=&").path == parent + "?page_size=300&page_token=x%3D%26")
    }
}
