import GatewayCore
import Testing

@Suite("TokenURI")
struct TokenURITests {
    @Test(
        "A token URL is parsed into its parts",
        arguments: [
            ("https://oauth2.googleapis.com/token", "oauth2.googleapis.com"),
            ("https://OAuth2.GoogleAPIs.com:443/token", "oauth2.googleapis.com"),
            ("https://oauth2.googleapis.com:8443/token", "oauth2.googleapis.com:8443"),
            ("http://127.0.0.1:80/token", "127.0.0.1"), ("http://[::1]:8085/token", "[::1]:8085"),
            ("https://host", "host"),
        ]
    )
    func parts(text: String, authority: String) throws {
        let uri = try #require(TokenURI(text))
        #expect(uri.authority == authority)
        #expect(uri.isEncrypted == text.hasPrefix("https"))
        #expect(uri.origin == (uri.isEncrypted ? "https://" : "http://") + authority)
        #expect(uri.path == (text == "https://host" ? "/" : "/token"))
        #expect(uri.text == text)
    }

    @Test(
        "A malformed or ambiguous token URL is refused",
        arguments: [
            "", "https://", "https:///token", "ftp://host/token", "HTTPS://host/token", "https://user@host/token",
            "https://oauth2.googleapis.com@evil.example/token", "https://host/token?x=1", "https://host/token#x",
            "https://host\\@evil.example/", "https://host:/token", "https://host:0/token", "https://host:65536/",
            "https://host:8x/", "https://[::1]x/", "https://ho st/", "https://host/%2e%2e", "https://höst/",
            "https://host:+1/", "https://:443/token",
        ]
    )
    func refused(text: String) {
        #expect(TokenURI(text) == nil)
    }

    @Test(
        "Google's token hosts are admitted only over HTTPS and on the default port",
        arguments: [
            ("https://oauth2.googleapis.com/token", true), ("https://accounts.google.com/o/oauth2/token", true),
            ("https://www.googleapis.com/oauth2/v4/token", true), ("http://oauth2.googleapis.com/token", false),
            ("https://oauth2.googleapis.com:8443/token", false), ("https://evil.example/token", false),
            ("https://oauth2.googleapis.com.evil.example/token", false), ("http://127.0.0.1:8085/token", false),
        ]
    )
    func google(text: String, isAllowed: Bool) throws {
        #expect(TokenHosts.google.admits(try #require(TokenURI(text))) == isAllowed)
    }

    @Test("A host is admitted with its listed port, and over plain HTTP only on this machine")
    func loopback() throws {
        let hosts = TokenHosts(["127.0.0.1:8085", "Stub.Example:81"])
        #expect(hosts.admits(try #require(TokenURI("http://127.0.0.1:8085/token"))))
        #expect(hosts.admits(try #require(TokenURI("https://127.0.0.1:8085/token"))))
        #expect(!hosts.admits(try #require(TokenURI("http://127.0.0.1:8086/token"))))
        #expect(!hosts.admits(try #require(TokenURI("http://stub.example:81/token"))))
        #expect(hosts.admits(try #require(TokenURI("https://stub.example:81/token"))))
    }

    @Test(
        "Plain HTTP is admitted only for this machine and the listed hosts",
        arguments: [
            ("http://127.0.0.1:8085", true), ("http://localhost", true), ("http://[::1]:1", true),
            ("http://fcm.inner", true), ("http://FCM.inner:8080/", true), ("http://[fd00::7]:80", true),
            ("http://fcm.inner.example", false), ("http://10.0.0.7", false), ("http://localhost.example", false),
            ("https://10.0.0.7", true), ("no URL", true),
        ]
    )
    func plainHTTP(endpoint: String, isAllowed: Bool) throws {
        let plainHTTP = PlainHTTP(hosts: ["fcm.Inner", "[fd00::7]"])
        #expect(plainHTTP.admits(endpoint: endpoint) == isAllowed)
        let hosts = TokenHosts(["fcm.inner"], plainHTTP: plainHTTP)
        #expect(hosts.admits(try #require(TokenURI("http://fcm.inner/token"))))
    }
}
