// Weight-stationary systolic array: sums[pixel][channel] += input[pixel][depth] * weights[depth][channel].
// A block of ROWS (depth) x COLS (channels) weights is in the array; the pixels pass by.
//
// PRELOAD=0: one weight register per element; a block starts when the last one has left.
// PRELOAD=1: a second (shadow) register per element; the next block is loaded meanwhile.
// WAIT=0 (only with PRELOAD=0): a block is loaded as soon as the last pixel of the one before has
//            entered, i.e. behind it, without a shadow register.
//
// Every signal of an element goes to its neighbours only: activations to the right, weights and
// partial sums down, each through one register.

// N registers one after the other; none for N = 0.
module delay #(parameter WIDTH = 8, parameter N = 1) (
    input wire clk, input wire reset, input wire [WIDTH-1:0] d, output wire [WIDTH-1:0] q
);
    generate if (N == 0) begin : none
        assign q = d;
    end else begin : some
        reg [WIDTH*N-1:0] s;
        always @(posedge clk) if (reset) s <= 0; else s <= (s << WIDTH) | d;
        assign q = s[WIDTH*N-1 -: WIDTH];
    end endgenerate
endmodule

// An element. `take`: the weight that passes is this row's. It goes down at half the speed of the
// weights, so that row r takes the weight r of the block. `swap`: the first pixel of a block.
module element #(parameter PRELOAD = 1) (
    input wire clk, input wire reset,
    input wire signed [7:0] a, input wire swap,
    input wire signed [7:0] w, input wire take,
    input wire signed [31:0] sum,
    output reg signed [7:0] a_right, output reg swap_right,
    output reg signed [7:0] w_down, output reg take_down,
    output reg signed [31:0] sum_down
);
    reg signed [7:0] held;
    reg take_half;
    wire signed [7:0] weight;

    always @(posedge clk) begin
        a_right <= a;
        w_down <= w;
        sum_down <= sum + a * weight;
        swap_right <= !reset && swap;
        take_half <= !reset && take;
        take_down <= !reset && take_half;
    end

    generate if (PRELOAD != 0) begin : two
        reg signed [7:0] shadow;
        assign weight = swap ? shadow : held;
        always @(posedge clk) begin
            if (take) shadow <= w;
            if (swap) held <= shadow;
        end
    end else begin : one
        assign weight = held;
        always @(posedge clk) if (take) held <= w;
    end endgenerate
endmodule

module systolic #(
    parameter ROWS = 4, parameter COLS = 4, parameter PRELOAD = 1, parameter WAIT = 1
) (
    input  wire clk, input wire reset,
    input  wire start,            // one cycle; the first row of weights enters in the next one
    output reg  done,             // one cycle, after the last sum was presented to its accumulator
    output wire entering,         // a row of weights enters the array in this cycle
    output wire leaving,          // the last column presents a sum to its accumulator
    input  wire [6:0] pixels,     // at least 1
    input  wire [4:0] across,     // blocks of channels, less one
    input  wire [9:0] blocks,     // in all; in memory as they are used: channels first
    // the memories, of a bank for each row (input) or column (weights, sums)
    input  wire [1:0] host_write, // 1 input [block of depth, pixel], 2 weights [block, row], 3 sums
    input  wire [7:0] host_bank,
    input  wire [11:0] host_address,
    input  wire [31:0] host_data,
    output wire [31:0] host_sum   // sums [block of channels, pixel]
);
    localparam [9:0] THROUGH = ROWS + COLS - 2;
    localparam [7:0] LAST_ROW = ROWS - 1;

    // ---- when: the loader of weights and the streamer of pixels
    reg running, full;                    // full: a block waits in the array, not yet used
    reg [9:0] to_load, to_stream;         // blocks
    reg [7:0] row;                        // of the block that is loaded
    reg [6:0] pixel;                      // of the block that is used
    reg [9:0] drain;                      // cycles until the array is empty
    reg [11:0] weight_address;
    reg [4:0] block_down, block_across;   // of the block that is used

    wire first_pixel = full && pixel == 0;
    wire streaming = first_pixel || pixel != 0;
    wire last_pixel = streaming && pixel == pixels - 7'd1;
    wire may_load = PRELOAD != 0 ? (!full || first_pixel) : (!full && pixel == 0 && drain == 0);
    wire first_row = running && to_load != 0 && row == 0 && may_load;
    wire loading = first_row || row != 0;
    wire last_row = loading && row == LAST_ROW;
    assign entering = loading;

    // {last of the tile, valid, address} of the sums, which appear under column 0 after ROWS cycles
    wire [12:0] tag [0:COLS];
    wire last_sum = tag[COLS-1][12];
    assign leaving = tag[COLS-1][11];
    delay #(13, ROWS) way_down (clk, reset,
        {last_pixel && to_stream == 10'd1, streaming, block_across, pixel[5:0]}, tag[0]);

    always @(posedge clk) begin
        if (loading) row <= last_row ? 8'd0 : row + 8'd1;
        if (loading) weight_address <= weight_address + 12'd1;
        if (last_row) to_load <= to_load - 10'd1;
        full <= last_row || (full && !first_pixel);

        if (streaming) pixel <= last_pixel ? 7'd0 : pixel + 7'd1;
        if (last_pixel) begin
            to_stream <= to_stream - 10'd1;
            block_across <= block_across == across ? 5'd0 : block_across + 5'd1;
            if (block_across == across) block_down <= block_down + 5'd1;
        end
        drain <= last_pixel && WAIT != 0 ? THROUGH : drain != 0 ? drain - 10'd1 : 10'd0;

        done <= running && leaving && last_sum;
        if (running && leaving && last_sum) running <= 0;
        if (start) begin
            running <= 1;
            to_load <= blocks;
            to_stream <= blocks;
            weight_address <= 0;
            block_down <= 0;
            block_across <= 0;
        end
        if (reset) begin
            running <= 0;
            done <= 0;
            full <= 0;
            row <= 0;
            pixel <= 0;
            drain <= 0;
            to_load <= 0;
        end
    end

    // ---- the edges of the array: memories and skew
    wire signed [7:0] a [0:ROWS-1][0:COLS], w [0:ROWS][0:COLS-1];
    wire swap [0:ROWS-1][0:COLS], take [0:ROWS][0:COLS-1];
    wire signed [31:0] sum [0:ROWS][0:COLS-1];

    wire [31:0] read [0:COLS-1];
    assign host_sum = read[host_bank];

    genvar r, c;
    generate
        for (r = 0; r < ROWS; r = r + 1) begin : input_bank
            reg signed [7:0] memory [0:2047];
            always @(posedge clk)
                if (host_write == 1 && host_bank == r) memory[host_address[10:0]] <= host_data[7:0];
            delay #(9, r) skew (clk, reset,
                {first_pixel, memory[{block_down, pixel[5:0]}]}, {swap[r][0], a[r][0]});
        end
        for (c = 0; c < COLS; c = c + 1) begin : column_bank
            reg signed [7:0] weights [0:4095];
            reg [31:0] sums [0:2047];
            wire [10:0] at = tag[c][10:0];
            always @(posedge clk) begin
                if (host_write == 2 && host_bank == c) weights[host_address] <= host_data[7:0];
                if (host_write == 3 && host_bank == c) sums[host_address[10:0]] <= host_data;
                else if (tag[c][11]) sums[at] <= sums[at] + sum[ROWS][c];
            end
            assign read[c] = sums[host_address[10:0]];
            delay #(9, c) skew (clk, reset,
                {first_row, weights[weight_address]}, {take[0][c], w[0][c]});
            delay #(13, 1) next (clk, reset, tag[c], tag[c+1]);
            assign sum[0][c] = 0;
        end
        // ---- the array
        for (r = 0; r < ROWS; r = r + 1) begin : array_row
            for (c = 0; c < COLS; c = c + 1) begin : array_column
                element #(PRELOAD) e (clk, reset, a[r][c], swap[r][c], w[r][c], take[r][c],
                    sum[r][c], a[r][c+1], swap[r][c+1], w[r+1][c], take[r+1][c], sum[r+1][c]);
            end
        end
    endgenerate
endmodule
