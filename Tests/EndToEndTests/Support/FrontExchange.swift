import Foundation
import ProcessTestKit

@testable import FCMGateway

/// What became of requests that were sent through a proxy, as everybody on the way saw it.
struct FrontExchange {
    /// A request as the proxy logged it.
    struct Logged: Equatable {
        /// The status it answered with.
        let status: String
        /// Whether the request went to the gateway.
        let wentOn: Bool
        /// The request's id.
        let identifier: String
        /// The port that the proxy called the gateway from; HAProxy alone tells.
        let port: Substring?
    }

    /// What the client got, in its order.
    let answers: [WireAnswer]
    /// What the proxy saw.
    let logged: [Logged]
    /// The ids of the requests that the gateway answered.
    let served: [String]
    /// How many requests the gateway refused before it knew an id.
    let refused: Int
    /// What the ids of this exchange end in.
    let suffix: String

    /// The requests that the proxy sent on to the gateway.
    var passed: [String] { self.logged.filter(\.wentOn).map(\.identifier) }

    /// What shows that the proxy and the gateway understood different things; empty when they did not.
    var disagreements: [String] {
        var found: [String] = []
        // An id that nobody sent is one that the gateway gave to a request without one.
        let given = self.served.filter { $0 == HostileRequest.hidden || $0.hasSuffix("-\(self.suffix)") }
        for identifier in Set(given) {
            let times = given.count { $0 == identifier }
            if times > self.passed.count(where: { $0 == identifier }) {
                found.append("the gateway served \(identifier) \(times) times")
            }
        }
        if self.served.count + self.refused > self.passed.count {
            found.append("the gateway saw more requests than the proxy sent on")
        }
        // One answer for each request; some of its own refusals the proxy keeps to itself.
        if !(self.passed.count...self.logged.count).contains(self.answers.count) {
            found.append("the client got \(self.answers.count) answers")
        }
        let order = ["own", "second", "probe", "after"].map { "\($0)-\(self.suffix)" }
        let places = self.answers.compactMap { order.firstIndex(of: $0.identifier) }
        if zip(places, places.dropFirst()).contains(where: { $0 >= $1 }) {
            found.append("the answers are not the requests' own")
        }
        if self.answers.last?.identifier != order.last {
            found.append("the next request did not get its own answer")
        }
        return found
    }
}

/// A proxy, the gateway behind it, and how far their logs were read.
final class FrontLogs {
    private let front: FrontProxy
    private let gateway: RunningGateway
    private var frontBytes = 0
    private var gatewayBytes = 0

    init(_ front: FrontProxy, _ gateway: RunningGateway) {
        self.front = front
        self.gateway = gateway
    }

    /// Sends bytes and a request behind them, then another over a connection of its own, and reads what came of it.
    func exchange(_ bytes: [UInt8], _ suffix: String) async throws -> FrontExchange {
        let before = try await self.gateway.rejections()
        let address = self.front.address
        let probe = HostileRequest.probe("probe-\(suffix)")
        var answers = WireAnswer.all(in: try await RawExchange.bytes(to: address, sending: bytes + probe))
        let last = HostileRequest.probe("after-\(suffix)")
        var lastAnswers = WireAnswer.all(in: try await RawExchange.bytes(to: address, sending: last))
        // The proxy gives a request a second, and a slow machine may not send it within that.
        while lastAnswers.first?.status == 408 {
            lastAnswers = WireAnswer.all(in: try await RawExchange.bytes(to: address, sending: last))
        }
        answers += lastAnswers
        let frontLog = try await Self.next(self.front.process.output, &self.frontBytes, until: "after-\(suffix)")
        let gatewayLog = try await Self.next(self.gateway.process.errors, &self.gatewayBytes, until: "after-\(suffix)")
        return FrontExchange(
            answers: answers,
            logged: frontLog.filter { $0.hasPrefix("front ") }.map(Self.logged(_:)),
            // The metrics are read beside the proxy.
            served:
                gatewayLog.filter { line in
                    line.contains(#""message":"Request answered""#) && !line.contains(#""route":"/metrics""#)
                }
                .compactMap { (try? JSONValue(parsing: Data($0.utf8)))?["request_id"]?.text },
            refused: try await self.gateway.rejections() - before,
            suffix: suffix
        )
    }

    /// The whole lines that were written since the last look, once one has a text in it.
    private static func next(_ output: ProcessOutput, _ position: inout Int, until mark: String) async throws
        -> [Substring]
    {
        let start = position
        let text = try await output.first { text in
            let new = String(decoding: text.utf8.dropFirst(start), as: UTF8.self)
            return new.contains(mark) && new.hasSuffix("\n") ? new : nil
        }
        position += text.utf8.count
        return text.split(separator: "\n")
    }

    private static func logged(_ line: Substring) -> FrontExchange.Logged {
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        let identifier = words.count > 3 && words[3] != "-" ? String(words[3]) : ""
        let server = words.count > 2 ? words[2] : "-"
        return FrontExchange.Logged(
            status: String(words.count > 1 ? words[1] : ""),
            wentOn: server != "-" && server != "<NOSRV>",
            identifier: identifier,
            port: words.count > 4 ? words[4] : nil
        )
    }
}
