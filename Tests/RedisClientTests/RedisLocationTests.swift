import Testing

@testable import RedisClient

@Suite("RedisLocation")
struct RedisLocationTests {
    @Test("A server's URL names host, port, user and database")
    func server() throws {
        let plain = try RedisLocation("redis://localhost")
        #expect(plain.endpoints == [RedisLocation.Endpoint(host: "localhost", port: 6_379)])
        #expect(!plain.usesTLS && plain.database == 0)
        #expect(plain.user == nil && plain.service == nil)
        let whole = try RedisLocation("rediss://fcm@[::1]:7000/3")
        #expect(whole.endpoints.map(\.description) == ["[::1]:7000"])
        #expect(whole.usesTLS && whole.database == 3)
        #expect(whole.user == "fcm")
    }

    @Test("A Sentinel URL names the Sentinels, the service and the database")
    func sentinels() throws {
        let location = try RedisLocation("redis+sentinel://a,b:7000/mymaster/1")
        #expect(location.endpoints.map(\.description) == ["a:26379", "b:7000"])
        #expect(location.service == "mymaster")
        #expect(location.database == 1)
        #expect(try RedisLocation("rediss+sentinel://a/m").usesTLS)
    }

    @Test(
        "Any other URL is refused, and the error does not quote its password",
        arguments: [
            "", "localhost", "http://a", "redis://", "redis://:secret@a", "redis://user:secret@a", "redis://@a",
            "redis://a,b", "redis://a:0", "redis://a:65536", "redis://a:b", "redis://a:", "redis://a/x", "redis://a/-1",
            "redis://a/16384", "redis://a/0/1", "redis://a?b", "redis://a#b", "redis://a b", "redis://é",
            "redis://[::1", "redis://[a]", "redis://[::1]x", "redis+sentinel://a", "redis+sentinel://a/",
            "redis+sentinel://a,/m", "redis+sentinel://a/m/x", "redis+sentinel://a/m/1/2",
        ]
    )
    func refused(url: String) {
        let fault = #expect(throws: RedisLocation.Fault.self) { try RedisLocation(url) }
        #expect(fault?.message.contains("secret") == false)
    }
}
