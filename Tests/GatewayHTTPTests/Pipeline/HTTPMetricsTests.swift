import GatewayCore
import GatewayTestKit
import MetricsTestKit
import Testing

@testable import GatewayHTTP

@Suite("HTTPMetrics")
struct HTTPMetricsTests {
    private static let label = "fcmgw_http_request_duration_seconds"

    private let factory = TestMetrics()

    /// The number of requests in each histogram, by route, method and status.
    private func counts() -> [String: Int] {
        self.factory.timers(label: Self.label)
            .reduce(into: [:]) { counts, timer in
                let labels = Dictionary(uniqueKeysWithValues: timer.dimensions)
                let name = ["route", "method", "status"].map { labels[$0] ?? "-" }.joined(separator: " ")
                counts[name, default: 0] += timer.values.count
            }
            .filter { $0.value > 0 }
    }

    private func serve(_ metrics: HTTPMetrics, _ route: String, _ status: Int, _ method: String = "GET") {
        metrics.began()
        metrics.ended(route: route, method: method, status: status, in: .milliseconds(1))
    }

    @Test("A method that a route doesn't have is measured without the route", arguments: ["DELETE", "BREW"])
    func noMethod(method: String) {
        let metrics = HTTPMetrics(GatewayMetrics(factory: self.factory), listener: "data")
        for route in ["/fcm/send", "/a", "none"] { self.serve(metrics, route, 405, method) }
        #expect(self.counts() == ["none \(method == "BREW" ? "other" : method) 405": 3])
    }

    @Test(
        "Beyond the limit new combinations share a histogram, and every request is counted",
        arguments: ["data", "admin"]
    )
    func bound(listener: String) {
        let metrics = HTTPMetrics(GatewayMetrics(factory: self.factory), listener: listener)
        var requests = 0
        for route in 0..<100 {
            for status in [200, 201, 404, 422, 500, 503] {
                for _ in 0..<2 {
                    self.serve(metrics, "/\(route)", status)
                    requests += 1
                }
            }
        }
        let counts = self.counts()
        #expect(counts.values.reduce(0, +) == requests)
        #expect(counts.count <= (listener == "data" ? 36 + 12 : 16 + 6) + 4)
        #expect(counts["/0 GET 200"] == 2)
        #expect(counts["other other 2xx", default: 0] > 100)
        #expect(counts["other other 4xx", default: 0] > 100)
        #expect(counts["other other 5xx", default: 0] > 100)
        #expect(counts.keys.contains { $0.hasSuffix(" GET 5xx") })
    }

    @Test("Refusals that any caller can provoke leave room for other responses")
    func refusals() {
        let metrics = HTTPMetrics(GatewayMetrics(factory: self.factory), listener: "data")
        for route in 0..<50 {
            for status in [400, 401, 413, 415, 417] { self.serve(metrics, "/\(route)", status, "POST") }
        }
        for (route, status) in [("/new", 200), ("/new", 503), ("/newer", 204), ("/newer", 500)] {
            self.serve(metrics, route, status)
            #expect(self.counts()["\(route) GET \(status)"] == 1)
        }
        self.serve(metrics, "/newest", 400)
        self.serve(metrics, "/newest", 401)
        #expect(self.counts()["/newest GET 400"] == nil)
    }

    @Test("A histogram that existed before the limit was reached stays")
    func known() {
        let metrics = HTTPMetrics(GatewayMetrics(factory: self.factory), listener: "admin")
        self.serve(metrics, "/first", 404)
        for route in 0..<100 {
            for status in [200, 404] { self.serve(metrics, "/\(route)", status) }
        }
        self.serve(metrics, "/first", 404)
        metrics.began()
        metrics.ended(route: SendMessage.template, method: "POST", status: 200, in: .milliseconds(1))
        #expect(self.counts()["/first GET 404"] == 2)
        #expect(self.counts()["\(SendMessage.template) POST 200"] == 1)
    }
}
