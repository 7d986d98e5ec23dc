import Testing

@testable import GatewayUpstream

struct V1PathTests {
    @Test(
        "A project's id can't lead out of its place in the path",
        arguments: [
            ("demo-project", "demo-project"), ("example.com:demo", "example.com:demo"), ("a/b", "a%2Fb"),
            ("a?b#c d", "a%3Fb%23c%20d"), ("ü", "%C3%BC"), ("a\r\nb", "a%0D%0Ab"),
        ]
    )
    func path(project: String, segment: String) {
        #expect(V1Path.send(project: project) == "/v1/projects/\(segment)/messages:send")
    }
}
