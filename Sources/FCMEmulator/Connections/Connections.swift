import NIOCore
import Synchronization

/// The open connections, and the numbers of their streams.
final class Connections: Sendable {
    enum HTTPVersion: String {
        case http1 = "http/1.1"
        case http2 = "h2"
    }

    private struct Entry {
        let channel: any Channel
        let version: HTTPVersion
        var report: ConnectionReport.Connection
    }

    private struct State {
        var open: [Int: Entry] = [:]
        var lastID = 0
        var accepted = 0
        var streams = 0
        var maxStreams = 0
        var maxStreamsPerConnection = 0
    }

    private let state = Mutex(State())

    /// Counts a connection until it closes; returns its number.
    func accept(_ channel: any Channel, version: HTTPVersion) -> Int {
        let id = self.state.withLock { state in
            state.lastID += 1
            state.accepted += 1
            let report = ConnectionReport.Connection(id: state.lastID, protocolName: version.rawValue)
            state.open[state.lastID] = Entry(channel: channel, version: version, report: report)
            return state.lastID
        }
        channel.closeFuture.whenComplete { _ in self.close(id) }
        return id
    }

    func streamOpened(on id: Int) {
        self.state.withLock { state in
            guard var report = state.open[id]?.report else { return }
            report.streams += 1
            report.maxStreams = max(report.maxStreams, report.streams)
            state.open[id]?.report = report
            state.streams += 1
            state.maxStreams = max(state.maxStreams, state.streams)
            state.maxStreamsPerConnection = max(state.maxStreamsPerConnection, report.streams)
        }
    }

    func streamClosed(on id: Int) {
        self.state.withLock { state in
            guard state.open[id] != nil else { return }
            state.open[id]?.report.streams -= 1
            state.streams -= 1
        }
    }

    func goesAway(_ id: Int) {
        self.state.withLock { $0.open[id]?.report.isGoingAway = true }
    }

    /// Sends a command to every HTTP/2 connection; returns their number.
    @discardableResult
    func command(_ command: ConnectionCommand) -> Int {
        let channels = self.state.withLock { state in
            state.open.values.filter { $0.version == .http2 }.map(\.channel)
        }
        for channel in channels {
            channel.triggerUserOutboundEvent(command, promise: nil)
        }
        return channels.count
    }

    /// The open connections and streams, and the maximum so far.
    var report: ConnectionReport {
        self.state.withLock { state in
            ConnectionReport(
                accepted: state.accepted,
                connections: state.open.values.map(\.report).sorted { $0.id < $1.id },
                streams: state.streams,
                maxStreams: state.maxStreams,
                maxStreamsPerConnection: state.maxStreamsPerConnection
            )
        }
    }

    func forget() {
        self.state.withLock { state in
            state.accepted = state.open.count
            state.maxStreams = state.streams
            state.maxStreamsPerConnection = state.open.values.map(\.report.streams).max() ?? 0
            state.open = state.open.mapValues { entry in
                var entry = entry
                entry.report.maxStreams = entry.report.streams
                return entry
            }
        }
    }

    private func close(_ id: Int) {
        self.state.withLock { state in
            guard let entry = state.open.removeValue(forKey: id) else { return }
            state.streams -= entry.report.streams
        }
    }
}

/// The numbers of connections and streams.
package struct ConnectionReport: Sendable, Equatable {
    /// An open connection; its streams are always 0 with HTTP/1.1.
    package struct Connection: Sendable, Equatable {
        /// The connection's number, as in the journal; counted from 1 and never reused.
        package let id: Int
        /// `h2` or `http/1.1`.
        package let protocolName: String
        /// Streams open now; always 0 with HTTP/1.1.
        package internal(set) var streams = 0
        package internal(set) var maxStreams = 0
        package internal(set) var isGoingAway = false

        init(id: Int, protocolName: String) {
            self.id = id
            self.protocolName = protocolName
        }
    }

    package let accepted: Int
    /// The open connections, oldest first; a connection counts once its protocol is known.
    package let connections: [Connection]
    package let streams: Int
    package let maxStreams: Int
    package let maxStreamsPerConnection: Int
}

extension ConnectionReport: Encodable {
    private enum CodingKeys: String, CodingKey {
        case accepted, connections, streams
        case maxStreams = "max_streams"
        case maxStreamsPerConnection = "max_streams_per_connection"
    }
}

extension ConnectionReport.Connection: Encodable {
    private enum CodingKeys: String, CodingKey {
        case id, streams
        case protocolName = "protocol"
        case maxStreams = "max_streams"
        case isGoingAway = "going_away"
    }
}
