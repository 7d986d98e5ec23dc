import Foundation
import GatewayTestKit
import NIOCore
import ProcessTestKit
import Testing

/// A proxy in front of the gateway, and its log.
struct FrontProxy: Sendable {
    enum Kind: String, CaseIterable, Sendable {
        case haproxy
        case nginx
    }

    let kind: Kind
    let address: SocketAddress
    /// Logs a line per request: `front`, status, server or its status, the request's id, and for HAProxy the source
    /// port of the connection to the server.
    let process: ChildProcess

    struct NotListening: Error {
        let errors: String
    }

    /// Runs a body with a proxy that forwards to a port and reuses one connection while it is open.
    static func with<Result>(
        _ kind: Kind,
        before port: Int,
        in directory: PrivateDirectory,
        _ body: (FrontProxy) async throws -> Result
    ) async throws -> Result {
        let program = try #require(Program.named(kind.rawValue), "\(kind) is not installed")
        let socket = directory.path("\(kind).sock")
        let file: String
        let arguments: [String]
        switch kind {
        case .haproxy:
            file = try directory.write(Self.haproxy(socket: socket, port: port), to: "haproxy.cfg")
            arguments = ["-db", "-f", file]
        case .nginx:
            file = try directory.write(Self.nginx(socket: socket, port: port, folder: directory.path), to: "nginx.conf")
            arguments = ["-p", directory.path, "-e", "stderr", "-c", file]
        }
        return try await ChildProcess.with(program, arguments) { process in
            let address = try SocketAddress(unixDomainSocketPath: socket)
            try await Self.waitUntilListening(address, process)
            return try await body(FrontProxy(kind: kind, address: address, process: process))
        }
    }

    private static func waitUntilListening(_ address: SocketAddress, _ process: ChildProcess) async throws {
        let probe = HostileRequest.probe("start")
        do {
            try await wait { (try? await RawExchange.bytes(to: address, sending: probe))?.isEmpty == false }
        } catch {
            throw NotListening(errors: process.errors.text + process.output.text)
        }
    }

    private static func haproxy(socket: String, port: Int) -> String {
        """
        global
            log stdout format raw local0
            nbthread 1
        defaults
            mode http
            log global
            timeout connect 2s
            timeout client 2s
            timeout server 5s
            timeout http-request 1s
            timeout http-keep-alive 1s
            http-reuse always
        frontend front
            bind \(socket)
            http-request capture req.hdr(X-Request-ID) len 64
            log-format "front %ST %s %[capture.req.hdr(0)] %bp"
            default_backend back
        backend back
            server gateway 127.0.0.1:\(port) pool-max-conn 1

        """
    }

    private static func nginx(socket: String, port: Int, folder: String) -> String {
        let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(folder)/nginx-\($0);" }
            .joined(separator: "\n    ")
        return """
            daemon off;
            master_process off;
            pid \(folder)/nginx.pid;
            error_log stderr error;
            events {}
            http {
                log_format front 'front $status $upstream_status $http_x_request_id';
                access_log /dev/stdout front;
                \(folders)
                client_header_timeout 1s;
                client_body_timeout 1s;
                keepalive_timeout 1s;
                client_max_body_size 8m;
                upstream gateway {
                    server 127.0.0.1:\(port);
                    keepalive 1;
                }
                server {
                    listen unix:\(socket);
                    location / {
                        proxy_pass http://gateway;
                        proxy_http_version 1.1;
                        proxy_set_header Connection "";
                        proxy_set_header Host $http_host;
                    }
                }
            }

            """
    }
}

/// The result of requests sent through a proxy, as the client, the proxy and the gateway saw it.
struct FrontExchange {
    struct Logged: Equatable {
        let status: String
        /// True if the proxy forwarded the request.
        let wentOn: Bool
        let identifier: String
        /// The proxy's source port, which only HAProxy logs.
        let port: Substring?
    }

    let answers: [WireAnswer]
    let logged: [Logged]
    /// The ids of the requests that the gateway answered.
    let served: [String]
    /// The number of requests that the gateway refused before it read an id.
    let refused: Int
    let suffix: String

    var passed: [String] { self.logged.filter(\.wentOn).map(\.identifier) }

    /// The differences between the proxy's and the gateway's reading; empty if they agree.
    var disagreements: [String] {
        var found: [String] = []
        // Leaves out ids that the gateway made for requests without one.
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
        // One answer per request, except that the proxy may drop its own refusals.
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

/// Reads the logs of a proxy and of the gateway behind it.
final class FrontLogs {
    private let front: FrontProxy
    private let gateway: RunningGateway
    private var frontBytes = 0
    private var gatewayBytes = 0

    init(_ front: FrontProxy, _ gateway: RunningGateway) {
        self.front = front
        self.gateway = gateway
    }

    /// Sends bytes followed by a request, then a request on a new connection, and reads answers and logs.
    func exchange(_ bytes: [UInt8], _ suffix: String) async throws -> FrontExchange {
        let before = try await self.gateway.rejections()
        let address = self.front.address
        let probe = HostileRequest.probe("probe-\(suffix)")
        var answers = WireAnswer.all(in: try await RawExchange.bytes(to: address, sending: bytes + probe))
        let last = HostileRequest.probe("after-\(suffix)")
        var lastAnswers = WireAnswer.all(in: try await RawExchange.bytes(to: address, sending: last))
        // The proxy allows a request one second, which a slow machine may exceed.
        while lastAnswers.first?.status == 408 {
            lastAnswers = WireAnswer.all(in: try await RawExchange.bytes(to: address, sending: last))
        }
        answers += lastAnswers
        let frontLog = try await Self.next(self.front.process.output, &self.frontBytes, until: "after-\(suffix)")
        let gatewayLog = try await Self.next(self.gateway.process.errors, &self.gatewayBytes, until: "after-\(suffix)")
        return FrontExchange(
            answers: answers,
            logged: frontLog.filter { $0.hasPrefix("front ") }.map(Self.logged(_:)),
            served: gatewayLog.filter { $0.contains(#""message":"Request answered""#) }
                .compactMap { (try? JSON(parsing: $0))?["request_id"]?.text },
            refused: try await self.gateway.rejections() - before,
            suffix: suffix
        )
    }

    /// The whole lines written since the last call, once one of them contains a text.
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

/// An entry of `Tests/Hostile/smuggling.json`: bytes that two parsers could read differently.
struct HostileRequest: Decodable, Sendable {
    /// The id of hidden requests, as long as its placeholder so that the table's lengths stay correct.
    static let hidden = "smuggled"

    let topic: String
    let name: String
    /// The bytes, one for each character up to U+00FF.
    let request: String
    /// The ids of the answered requests, in order.
    let answered: [String]?
    /// The status of the refusal that follows, if any.
    let refused: Int?
    /// True if the connection ends with the last answer.
    let closes: Bool?

    static func all() throws -> [HostileRequest] {
        let table = URL.inRepository("Tests/Hostile/smuggling.json")
        return try JSONDecoder().decode([Self].self, from: Data(contentsOf: table))
    }

    /// The bytes, with ids that end in a suffix.
    func bytes(_ suffix: String) -> [UInt8] {
        self.request
            .replacing("@own@", with: "own-\(suffix)")
            .replacing("@second@", with: "second-\(suffix)")
            .replacing("@hidden@", with: Self.hidden)
            .unicodeScalars
            .map { UInt8($0.value) }
    }

    /// An unambiguous request that closes its connection.
    static func probe(_ identifier: String) -> [UInt8] {
        Array("GET /v1/probe HTTP/1.1\r\nHost: a\r\nX-Request-ID: \(identifier)\r\nConnection: close\r\n\r\n".utf8)
    }
}
