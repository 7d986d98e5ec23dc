package import Foundation

/// The reason that a file can't be read, in the system's words. Never holds any of the file's content.
package struct UnreadableFile: Error, CustomStringConvertible {
    private let path: String
    /// The reason without the file's name.
    package let reason: String

    package var description: String { "\(self.path) \(self.reason)" }

    fileprivate init(_ path: String) {
        self.path = path
        var isDirectory: ObjCBool = false
        // The call sets the flag before it returns.
        if unsafe FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), isDirectory.boolValue {
            self.reason = "cannot be read: it is a directory"
            return
        }
        // The path is copied for the call.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        let number = errno
        if descriptor >= 0 { close(descriptor) }
        let reason = descriptor < 0 ? SystemError.text(number) : "it has no readable content"
        self.reason = "cannot be read: \(reason)"
    }
}

extension Data {
    /// Reads a whole file.
    package init(contentsOfFile path: String) throws(UnreadableFile) {
        guard let data = FileManager.default.contents(atPath: path) else { throw UnreadableFile(path) }
        self = data
    }
}

/// Puts the system's errors into words.
package enum SystemError {
    package static func text(_ number: Int32) -> String {
        // The system owns the text, so it is copied at once.
        unsafe String(cString: strerror(number))
    }

    /// Returns the reason for a Foundation file error. The error's own text may be only a number.
    package static func text(_ error: any Error) -> String {
        guard let reason = (error as? CocoaError)?.underlying as? POSIXError else { return error.localizedDescription }
        return self.text(reason.code.rawValue)
    }
}
